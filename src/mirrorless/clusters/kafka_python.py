"""kafka-python's admin client, for what confluent-kafka's cannot do; its sockets are closed where none comes to use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka.admin import KafkaAdminClient
from kafka.net.inet import KafkaNetSocket
from kafka.net.transport import KafkaSSLTransport

from mirrorless.clusters.client_settings import for_kafka_python

if TYPE_CHECKING:
    from mirrorless.settings import Cluster

_connect: Any = KafkaNetSocket.sock_connect
_shake_hands: Any = KafkaSSLTransport.handshake


def admin_client(cluster: Cluster) -> KafkaAdminClient:
    """Connect to a cluster, with its settings for an admin client; raises kafka-python's errors."""
    client: Any = KafkaAdminClient(**for_kafka_python(cluster, role="admin"))
    client._manager.cluster.config["allow_auto_create_topics"] = False
    return client  # type: ignore[no-any-return]


# The library leaves a socket to the garbage collector that was refused or had no agreement on keys: where a cluster is
# away, one for each try of each lease.
async def _connect_or_close(self: KafkaNetSocket, net: Any, sock: Any, *to: Any, **until: Any) -> Any:  # noqa: ANN401
    try:
        return await _connect(self, net, sock, *to, **until)
    except BaseException:
        sock.close()
        raise


async def _shake_hands_or_close(self: KafkaSSLTransport) -> None:
    try:
        await _shake_hands(self)
    except BaseException:
        self.abort()
        raise


KafkaNetSocket.sock_connect = _connect_or_close  # type: ignore[method-assign]
KafkaSSLTransport.handshake = _shake_hands_or_close  # type: ignore[method-assign]

"""Reads which users have SCRAM credentials, and with which mechanisms (KIP-554). Passwords cannot be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mirrorless.clusters.cluster_requests import NotThere, asked
from mirrorless.kafka_python.errors import for_code
from mirrorless.kafka_python.messages import DescribeUserScramCredentialsRequest

if TYPE_CHECKING:
    from mirrorless.kafka_python.admin import AdminRequests
    from mirrorless.settings import Cluster

_MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}


def scram_users(cluster: Cluster) -> frozenset[tuple[str, str]] | NotThere:
    """Return the users of a cluster, each with each of its mechanisms; raises `ClusterUnavailable`."""

    def ask(client: AdminRequests) -> frozenset[tuple[str, str]]:
        answer = client.ask_any_broker(DescribeUserScramCredentialsRequest(users=None))
        if answer.error_code:
            raise for_code(answer.error_code)
        return frozenset(
            (user.user, _MECHANISMS.get(one.mechanism, f"mechanism {one.mechanism}"))
            for user in answer.results
            for one in user.credential_infos
        )

    return asked(cluster, ask, what="the users", right="DESCRIBE")

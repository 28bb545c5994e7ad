"""Connects to a cluster that does not answer, with a new client and the current settings."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from mirrorless.clusters import outages
from mirrorless.clusters.admin import Admin
from mirrorless.clusters.client_settings import login_digest
from mirrorless.errors import MirrorlessError
from mirrorless.settings.references import providers

if TYPE_CHECKING:
    from mirrorless.settings import Cluster

_TIMEOUT_S: Final = 8.0
_LOOK_S: Final = 0.1
_STORES_OF_AWS: Final = frozenset({"secretsmanager", "ssm"})


class LoginAttempts:
    """The attempts of `outages.watched`."""

    def connect(self, cluster: Cluster) -> None:
        """Connect once, log in, and ask for the cluster's brokers; raises `MirrorlessError`."""
        admin = Admin(cluster, extra={"reconnect.backoff.ms": 60_000, "reconnect.backoff.max.ms": 60_000})
        answer = admin.client.describe_cluster(request_timeout=_TIMEOUT_S)
        while not answer.done():
            time.sleep(_LOOK_S)
            admin.poll()
            error = admin.noticed
            if error is not None and error.code in outages.REFUSED:
                raise error  # the request would wait for its timeout
        admin.result(answer)

    def login_digest(self, cluster: Cluster) -> str | None:
        """Return a digest of what local files say about the login; None if it is stored in AWS."""
        if any(provider in _STORES_OF_AWS for value in cluster.client.values() for provider, _ in providers(value)):
            return None
        try:
            return login_digest(cluster)
        except (MirrorlessError, OSError) as error:
            return str(error)

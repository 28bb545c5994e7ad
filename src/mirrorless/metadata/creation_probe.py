"""Asks a target which configs a new topic would get, without creating it (KIP-525)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from mirrorless.clusters.effective_configs import EffectiveConfigs, ask_creation
from mirrorless.clusters.kafka_admin_client import admin_client
from mirrorless.kafka_python import errors as kafka_errors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mirrorless.settings import Cluster


class CreationProbe:
    """Asks a cluster for the configs of a new topic; it connects when it is first called."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._client: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._client is not None:
            self._client.close()

    def __call__(self, name: str, config: Mapping[str, str]) -> EffectiveConfigs | str:
        """Return the answer, or why there is none, with `{}` for the topic's name."""
        try:
            if self._client is None:
                self._client = admin_client(self._cluster)
            return ask_creation(
                self._client.ask_controller,
                name,
                partitions=1,
                replication_factor=-1,
                config=config,
            )
        except (kafka_errors.KafkaError, OSError) as error:
            return f"{{}}: {error}"

    def defaults(self, name: str) -> Mapping[str, str | None]:
        """Return what a new topic gets without configs; nothing without the right to see it, DESCRIBE_CONFIGS."""
        found = self(name, {})
        return {} if isinstance(found, str) or found.configs is None else found.configs

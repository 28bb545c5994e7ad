"""Reads the retention of each topic on both ends of a flow, for a note in its plan. Writes nothing."""

from __future__ import annotations

from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any

from mirrorless.clusters.configs import topic_configs
from mirrorless.clusters.effective_configs import EffectiveConfigs, ask_creation
from mirrorless.clusters.kafka_admin_client import admin_client
from mirrorless.filters import config_filter_for
from mirrorless.kafka_python import errors as kafka_errors
from mirrorless.kafka_python.admin import ask_controller
from mirrorless.metadata.expected_configs import Target, Unread, topic_pairs
from mirrorless.metadata.retention import compare_retention

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mirrorless.clusters.admin import Admin
    from mirrorless.settings import Cluster, Flow


def retention_note(
    flow: Flow,
    *,
    source: Admin,
    target: Admin,
    remote: Mapping[str, str],
    counts: Mapping[str, int],
    replicas: Mapping[str, int],
) -> str | None:
    """One line on topics whose records are deleted sooner on the target, None if no such topic is known.

    `replicas` are the topics of the target. Topics whose configs are not visible are skipped: `mirrorless doctor` names
    them. Raises `ClusterUnavailable`.
    """
    chosen = config_filter_for(flow)
    here, _ = topic_configs(source, remote)
    there, _ = topic_configs(target, [name for name in remote.values() if name in replicas])
    with ExitStack() as stack:
        pairs = topic_pairs(
            flow,
            remote=remote,
            counts=counts,
            chosen=chosen,
            source=here,
            target=Target(replicas=replicas, configs=there),
            would_be=_Asks(flow.target, stack),
            unread=Unread(),
        )
        shorter = compare_retention(flow, chosen, pairs)
    return None if shorter is None else f"{shorter.text}; {shorter.fix}"


class _Asks:
    """Asks a cluster for the configs of a new topic; it connects when it is first called."""

    def __init__(self, cluster: Cluster, stack: ExitStack) -> None:
        self._cluster = cluster
        self._stack = stack
        self._client: Any = None

    def __call__(self, name: str, config: Mapping[str, str]) -> EffectiveConfigs | str:
        try:
            if self._client is None:
                self._client = self._stack.enter_context(closing(admin_client(self._cluster)))
            return ask_creation(
                lambda request: ask_controller(self._client, request),
                name,
                partitions=1,
                replication_factor=-1,
                config=config,
            )
        except (kafka_errors.KafkaError, OSError) as error:
            return f"{{}}: {error}"

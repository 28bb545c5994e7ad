"""Which ACLs a flow has added: a compacted topic on the target, because an ACL itself cannot say where it is from.

`mm2-acls.<source>.internal`, one partition, used only with `mirrorless.acls.prune`. The key is the ACL, as JSON; the
value says which flow added it, when, the id of the cluster it came from, and how topics were named then: by which
policy and separator, for which connector. Null: it is the flow's no longer.

An ACL is recorded after it was added, and only if the flow found that the target lacked it. So one that somebody else
has added is never recorded: not one that was there before, nor one of before pruning was switched on. Whoever dies
between adding and recording, or between forgetting and removing, leaves an ACL that is never removed; the other order
could remove one that is not ours. What no order can tell apart is an ACL that an administrator adds in the same moment
as the flow, or removes and adds again by hand: Kafka keeps one ACL, and this record says that it is the flow's.
"""

from __future__ import annotations

import json
import time
from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from confluent_kafka import KafkaException, Producer

from mirrorless.client_logs import LIBRDKAFKA
from mirrorless.clusters.acls import Acl
from mirrorless.clusters.admin import Admin
from mirrorless.clusters.client_settings import for_confluent
from mirrorless.clusters.replay import Replay
from mirrorless.errors import ClusterError, ClusterUnavailable
from mirrorless.metadata.actions import CreateTopic

if TYPE_CHECKING:
    from collections.abc import Iterable

    from confluent_kafka import KafkaError

    from mirrorless.settings import Cluster, Flow

_TIMEOUT_S: Final = 30.0


def record_topic(flow: Flow) -> str:
    """Return the topic's name; as an internal one of MirrorMaker's it is never replicated."""
    return f"mm2-acls.{flow.source.alias}.internal"


def creation(flow: Flow) -> CreateTopic:
    """Return how to make the topic."""
    return CreateTopic(
        topic=record_topic(flow),
        partitions=1,
        replication_factor=flow.offset_storage_replication_factor,
        reason=f"which ACLs {flow.name} has added is kept there (mirrorless.acls.prune)",
        config={"cleanup.policy": "compact"},
        factor_key="offset.storage.replication.factor",
        factor_is_default=flow.is_default("offset_storage_replication_factor"),
    )


class AclRecord:
    """The record of one flow; `source_id` is the cluster id of its source, `admin` the target's client."""

    def __init__(self, flow: Flow, *, source_id: str, admin: Admin | None = None) -> None:
        self._flow = flow.name
        self._topic = record_topic(flow)
        self._source_id = source_id
        self._named = [flow.replication_policy_class, flow.replication_policy_separator, flow.connector_name]
        self._target: Cluster = flow.target
        self._admin = admin or Admin(flow.target)

    def read(self) -> tuple[frozenset[Acl], int]:
        """ACLs that this flow added for this source, and how many it added for another cluster, or under other names.

        What leads to the latter today's names do not tell. The topic must exist. Raises `ClusterError`.
        """
        latest = self._latest()
        try:
            said = {Acl(**json.loads(key)): json.loads(value) for key, value in latest.items()}
            ours = frozenset(acl for acl, one in said.items() if self._is_ours(one["source_id"], one.get("named")))
        except (ValueError, TypeError, KeyError) as error:
            reason = f"{self._topic} has a record that is no ACL of this program's"
            raise ClusterError(reason, cluster=self._target.alias) from error
        return ours, len(said) - len(ours)

    def add(self, acls: Iterable[Acl]) -> None:
        """Remember that the flow has added these; raises `ClusterError` if that is not certain."""
        now_ms = int(time.time() * 1000)
        said: dict[str, object] = {"flow": self._flow, "source_id": self._source_id, "added_ms": now_ms}
        said["named"] = self._named
        self._write({_key(acl): json.dumps(said).encode() for acl in acls})

    def forget(self, acls: Iterable[Acl]) -> None:
        """Remember these no longer; raises `ClusterError` if that is not certain."""
        self._write({_key(acl): None for acl in acls})

    def _is_ours(self, source_id: object, named: object) -> bool:
        return source_id == self._source_id and named in (None, self._named)  # None: before it was written down

    def _latest(self) -> dict[bytes, bytes]:
        replay = Replay(topic=self._topic, cluster=self._target, admin=self._admin, must_exist=True)
        latest: dict[bytes, bytes] = {}
        with closing(replay):
            for entry in replay.read():
                if entry.key is not None:
                    latest.pop(entry.key, None)
                    if entry.value is not None:
                        latest[entry.key] = entry.value
        return latest

    def _write(self, records: dict[bytes, bytes | None]) -> None:
        producer = Producer(
            for_confluent(self._target, role="producer", extra={"logger": LIBRDKAFKA, "acks": "all", "linger.ms": 5})
        )
        outcomes: list[KafkaError | None] = []
        try:
            for key, value in records.items():
                producer.produce(
                    self._topic, key=key, value=value, partition=0, on_delivery=lambda error, _: outcomes.append(error)
                )
            unsent = producer.flush(_TIMEOUT_S)
        except (KafkaException, BufferError) as error:
            raise ClusterError(f"{self._topic}: {error}", cluster=self._target.alias) from error
        if unsent:
            reason = f"{self._topic} was not acknowledged in {_TIMEOUT_S:.0f} s"
            raise ClusterUnavailable(reason, cluster=self._target.alias)
        if refused := next((error for error in outcomes if error is not None), None):
            raise ClusterError(f"{self._topic}: {refused.str()}", cluster=self._target.alias)


def _key(acl: Acl) -> bytes:
    return json.dumps(asdict(acl), sort_keys=True, separators=(",", ":")).encode()

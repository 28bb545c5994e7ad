"""Records which ACLs a flow added, in a compacted topic on the target, because an ACL itself has no origin.

`mm2-acls.<source>.internal`, one partition, used only with `mirrorless.acls.prune`. The key is the ACL, as JSON; the
value has the flow that added it, the time, the id of the cluster it came from, and how topics were named then: the
policy, the separator and the connector. A null value: the ACL is no longer the flow's.

An ACL is recorded after it was added, and only if the flow found that the target lacked it. So an ACL that was added by
others is never recorded: neither one that existed before, nor one of before pruning was enabled. A process that dies
between adding and recording, or between forgetting and removing, leaves an ACL that is never removed; the other order
could remove an ACL that others added. No order can distinguish an ACL that an administrator adds at the same moment
as the flow, or removes and adds again by hand: Kafka keeps one ACL, and this record says that it is the flow's.
"""

from __future__ import annotations

import json
import time
from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from mirrorless.clusters.acls import Acl
from mirrorless.clusters.admin import Admin
from mirrorless.clusters.producer import TopicProducer
from mirrorless.clusters.replay import Replay
from mirrorless.errors import ClusterError
from mirrorless.metadata.actions import CreateTopic

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mirrorless.settings import Cluster, Flow

_TIMEOUT_S: Final = 30.0


def record_topic(flow: Flow) -> str:
    """Return the topic's name; as an internal topic of MirrorMaker it is never replicated."""
    return f"mm2-acls.{flow.source.alias}.internal"


def creation(flow: Flow) -> CreateTopic:
    """Return the action that creates the topic."""
    return CreateTopic(
        topic=record_topic(flow),
        partitions=1,
        replication_factor=flow.offset_storage_replication_factor,
        reason=f"records which ACLs {flow.name} added (mirrorless.acls.prune)",
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

        The current names do not show the origin of the latter. The topic must exist. Raises `ClusterError`.
        """
        latest = self._latest()
        try:
            said = {Acl(**json.loads(key)): json.loads(value) for key, value in latest.items()}
            ours = frozenset(acl for acl, one in said.items() if self._is_ours(one["source_id"], one.get("named")))
        except (ValueError, TypeError, KeyError) as error:
            reason = f"{self._topic} has a record that was not written by this program"
            raise ClusterError(reason, cluster=self._target.alias) from error
        return ours, len(said) - len(ours)

    def add(self, acls: Iterable[Acl]) -> None:
        """Record that the flow added these; raises `ClusterError` if the record may not be written."""
        now_ms = int(time.time() * 1000)
        said: dict[str, object] = {"flow": self._flow, "source_id": self._source_id, "added_ms": now_ms}
        said["named"] = self._named
        self._write({_key(acl): json.dumps(said).encode() for acl in acls})

    def forget(self, acls: Iterable[Acl]) -> None:
        """Delete the records of these; raises `ClusterError` if the records may still exist."""
        self._write({_key(acl): None for acl in acls})

    def _is_ours(self, source_id: object, named: object) -> bool:
        return source_id == self._source_id and named in (
            None,
            self._named,
        )  # None in old records

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
        producer = TopicProducer(self._target, creator="the next sync of metadata", linger_ms=5)
        for key, value in records.items():
            producer.send(self._topic, key=key, value=value, partition=0)
        producer.confirm(self._topic, _TIMEOUT_S, refused=ClusterError)


def _key(acl: Acl) -> bytes:
    return json.dumps(asdict(acl), sort_keys=True, separators=(",", ":")).encode()

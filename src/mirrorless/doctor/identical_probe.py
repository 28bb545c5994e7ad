"""Tries what identical offsets need of a target, on a topic that is created for it and deleted."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING, Final

from confluent_kafka.admin import NewTopic

from mirrorless.batches import checksum
from mirrorless.batches.filler import filler
from mirrorless.clusters.admin import Admin
from mirrorless.clusters.client_settings import for_kafka_python
from mirrorless.clusters.topics import create_topics
from mirrorless.doctor.findings import Finding, Status
from mirrorless.errors import MirrorlessError
from mirrorless.kafka_python import errors as kafka_errors
from mirrorless.modes import Modes
from mirrorless.policy import policy_for
from mirrorless.protocol import clients
from mirrorless.protocol.broker_errors import error_name
from mirrorless.protocol.leaders import NotNow, leader_of
from mirrorless.protocol.markers import RIGHT, delete_records, write_markers

if TYPE_CHECKING:
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.protocol.cluster_client import ClusterClient
    from mirrorless.settings import Flow

CHECK: Final = "identical offsets"
_BEGIN: Final = 100
_MARKERS: Final = 3
_FILLER_ID, _MARKER_ID = (1 << 61) + 1, (1 << 61) + 2
_TIMEOUT_MS: Final = 20_000
_LOWER_EPOCH: Final = 47
_PATIENCE_S: Final = 15.0


def probe_identical_offsets(flow: Flow) -> Finding | None:
    """Have a topic begin at an offset and take others by markers; None for a flow without identical offsets."""
    if not Modes(flow).keeps_any_offsets:
        return None
    alias = flow.target.alias
    topic = policy_for(flow).format_remote_topic(flow.source.alias, f"mirrorless-probe-{uuid.uuid4().hex[:8]}")
    admin = Admin(flow.target)
    try:
        # The brokers' own replication factor: the topic is to be acknowledged as others are.
        refused = create_topics(admin, [NewTopic(topic, 1, -1)])[topic]
        if refused is not None:
            return _finding(alias, Status.NOT_CHECKED, f"topic {topic} could not be created: {refused.text}")
        try:
            wrong = _try(flow, topic)
        finally:
            left = admin.refusal(admin.client.delete_topics([topic])[topic])
    except (MirrorlessError, kafka_errors.KafkaError) as error:
        return _finding(alias, Status.NOT_CHECKED, str(error))
    if wrong is not None:
        fix = f"on {alias}, allow the flow's user {RIGHT} and DELETE on remote topics, or set mirrorless.offsets=dense"
        return _finding(alias, Status.FAILED, wrong, fix=fix)
    text = f"a topic began at offset {_BEGIN}, and {_MARKERS} markers took as many offsets"
    if left is not None:
        return _finding(alias, Status.WARNING, f"{text}; topic {topic} was not deleted: {left.text}")
    return _finding(alias, Status.OK, text)


def _finding(alias: str, status: Status, text: str, *, fix: str | None = None) -> Finding:
    return Finding(check=CHECK, status=status, text=text, cluster=alias, fix=fix)


def _try(flow: Flow, topic: str) -> str | None:
    """Return what the target refuses, None if nothing."""

    async def run() -> str | None:
        until = time.monotonic() + _PATIENCE_S
        while True:
            try:
                await client.connect(timeout_ms=_TIMEOUT_MS, topics=[topic])
                return await _steps(client, leader_of(client, (topic, 0)), (topic, 0))
            except NotNow:
                if time.monotonic() > until:
                    raise
                await net.sleep(0.1)

    checksum.prepare()
    net = clients.event_loop()
    client = clients.cluster_client(
        net, cluster=flow.target.alias, config=for_kafka_python(flow.target, role="producer")
    )
    try:
        found: str | None = net.run(run)
    finally:
        client.close()
        net.close()
    return found


async def _steps(client: ClusterClient, node: int, place: TopicPartition) -> str | None:
    """Fill, delete, write markers, and append after them."""

    async def append(begin: int, count: int, sequence: int) -> str | None:
        batch = filler(count, producer_id=_FILLER_ID, base_sequence=sequence)
        (answer,) = await client.append(node, [(place, batch)], timeout_ms=_TIMEOUT_MS)
        if answer.error_code:
            return f"appending: {error_name(answer.error_code)}"
        if answer.base_offset != begin:
            return f"a record for offset {begin} was appended at offset {answer.base_offset}"
        return None

    async def mark(epoch: int, count: int, expected: int) -> str | None:
        code = await write_markers(client, node, place, producer=_MARKER_ID, epoch=epoch, count=count)
        if code == expected:
            return None
        return f"WriteTxnMarkers in epoch {epoch}: {error_name(code) if code else 'accepted'}"

    if (wrong := await append(0, _BEGIN, 0)) is not None:
        return wrong
    if code := (await delete_records(client, node, {place: _BEGIN}))[place]:
        return f"DeleteRecords: {error_name(code)}"
    return (
        await mark(1, _MARKERS, 0)
        or await mark(0, 1, _LOWER_EPOCH)  # an older claim is refused
        or await append(_BEGIN + _MARKERS, 1, _BEGIN)
    )

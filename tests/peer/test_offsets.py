"""Java's own client and a running MirrorMaker 2 read what we write, and we read what they write."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mirrorless.client import MirrorClient
from mirrorless.clusters.admin import Admin
from mirrorless.clusters.internal_topics import checkpoints_topic, offset_syncs_topic
from mirrorless.heartbeats import Heartbeats
from mirrorless.offsets.checkpoint_pass import Checkpoints
from mirrorless.offsets.checkpoints import CheckpointTopic
from mirrorless.offsets.translation_service import OffsetSyncs
from tests.support.offsets import commit, committed_records, downstream_of, flow_of, plant_syncs, transactions
from tests.support.peer import MirrorMaker, peer_settings, run_java
from tests.support.world import fill

if TYPE_CHECKING:
    from mirrorless.settings import Flow
    from tests.support.world import World

pytestmark = pytest.mark.timeout(400)
REMOTE = Path(__file__).with_name("Remote.java")
_PATIENCE_S = 120


def offsets_of(peer: MirrorMaker, flow: Flow, group: str) -> dict[tuple[str, int], tuple[int, str]]:
    """Wait until the peer has written checkpoints of a group, as our client reads them."""
    client = MirrorClient(flow.target)
    until = time.monotonic() + _PATIENCE_S
    while not (found := client.translate_offsets(flow.source.alias, group)):
        peer.check()
        assert time.monotonic() < until, peer.log.read_text()[-3000:]
        time.sleep(1)
    return found


def test_javas_client_reads_our_checkpoints_and_heartbeats(world: World) -> None:
    topic = world.topic(partitions=2)
    fill(world.source, topic, (b"%d" % number for number in range(100)), partitions=2)
    world.copy()
    flow = flow_of(world, groups=topic, **{"heartbeats.replication.enabled": "true"})
    plant_syncs(flow, {(topic, partition): list(range(50)) for partition in range(2)})
    commit(world.source, topic, {(topic, 0): 17, (topic, 1): 50}, metadata="mine")
    passes = Checkpoints(flow)
    assert passes.emit().emitted == 2
    # The next one carries what was committed.
    assert passes.sync_groups().written == 2
    commit(world.source, topic, {(topic, 1): 40}, metadata="mine")
    assert passes.emit().emitted == 1
    passes.close()
    with closing(CheckpointTopic(checkpoints_topic(flow), Admin(flow.target), wanted=lambda _: True)) as written:
        assert written.read()[topic][world.remote(topic), 1].committed == 50
    # The way back, whose heartbeats this flow replicates.
    back = flow.model_copy(update={"source": flow.target, "target": flow.source})
    Heartbeats(back).beat([back], timestamp_ms=int(time.time() * 1000))
    Heartbeats(flow).beat([flow], timestamp_ms=int(time.time() * 1000))
    world.copy()
    remote, alias = world.remote(topic), world.source_alias
    lines = run_java(REMOTE, world.target.bootstrap_servers, alias, topic).splitlines()
    assert {
        "hops 1",
        f"upstream {alias}",
        "heartbeats heartbeats",
        f"heartbeats {alias}.heartbeats",
        f"checkpoints {alias}.checkpoints.internal",
        f"offset {remote}-0 17 mine",
        f"offset {remote}-1 40 mine",
    } <= set(lines)
    with MirrorClient(flow.target) as client:
        assert f"upstream {alias}" in lines
        assert {f"heartbeats {one}" for one in client.heartbeat_topics()} <= set(lines)
        assert client.replication_hops(alias) == 1


def test_our_client_reads_what_mirrormaker_wrote_and_we_translate_by_its_syncs(world: World) -> None:
    topic = world.topic()
    fill(world.source, topic, (b"%d" % number for number in range(1000)))
    commit(world.source, topic, {(topic, 0): 1000})
    flow = flow_of(world, groups=f"{topic}.*")
    with MirrorMaker(world.folder, peer_settings(world, groups=f"{topic}.*")) as peer:
        found = offsets_of(peer, flow, topic)
        ((place, (offset, metadata)),) = found.items()
        assert (place, metadata) == ((world.remote(topic), 0), "")
        assert 0 < offset <= 1000
        client = MirrorClient(flow.target)
        until = time.monotonic() + _PATIENCE_S
        while client.upstream_clusters() < {world.source_alias}:
            peer.check()
            assert time.monotonic() < until
            time.sleep(1)
        assert client.replication_hops(world.source_alias) == 1
    # Its checkpoint is ours to begin with; its syncs translate, never ahead of the group.
    found = client.translate_offsets(world.source_alias, topic)
    commit(world.source, f"{topic}-2", {(topic, 0): 500})
    passes = Checkpoints(flow)
    report = passes.emit()
    passes.close()
    assert report.malformed == 0
    assert report.how.keys() <= {"pair", "nearest"}
    assert client.translate_offsets(world.source_alias, topic)[place] >= found[place]
    second = client.translate_offsets(world.source_alias, f"{topic}-2")
    assert all(offset <= 500 for offset, _ in second.values())


def test_mirrormakers_checkpoint_task_accepts_our_syncs(world: World) -> None:
    topic = world.topic()
    transactions(world.source, topic, 200, records=2)
    world.copy()
    flow = flow_of(world, groups=f"{topic}.*", **{"mirrorless.sync.index.records": "100"})
    records = committed_records(world.source, topic)[0]
    plant_syncs(flow, {(topic, 0): records})
    syncs = OffsetSyncs(offset_syncs_topic(flow), Admin(flow.source))
    syncs.read()
    syncs.close()
    offsets = [records[100] + 1, records[250] + 1, records[-1] + 1]
    for offset in offsets:
        commit(world.source, f"{topic}-{offset}", {(topic, 0): offset})
    with MirrorMaker(world.folder, peer_settings(world, groups=f"{topic}.*")) as peer:
        for offset in offsets:
            found = offsets_of(peer, flow, f"{topic}-{offset}")
            assert found == {(world.remote(topic), 0): (syncs.slots.translate((topic, 0), offset), "")}
            assert found[world.remote(topic), 0][0] <= downstream_of(records, offset)
    # It went on behind our progress: nothing was copied twice.
    assert len(committed_records(world.target, world.remote(topic))[0]) == len(records)

"""Announcements of epochs: few requests, and of two writers the first one's is stored; the cluster is in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mirrorless.copy.partition.min_insync_replicas import TooFewReplicas
from mirrorless.errors import GapKind
from mirrorless.kafka_python import errors as kafka_errors
from mirrorless.progress.records import Announcement
from mirrorless.protocol.cluster_client import LATEST
from mirrorless.protocol.leaders import NotNow
from tests.support.fake_flow import PROGRESS_TOPIC, FakeFlow

if TYPE_CHECKING:
    from mirrorless.copy.resume.epochs import Epochs


def wanted(start: int, *, epoch: int = 0) -> Announcement:
    return Announcement(epoch=epoch, start=start, downstream=0, reason="first copy")


def announce(flow: FakeFlow, *asked: tuple[Epochs, int, Announcement]) -> list[Announcement]:
    """Announce epochs of these partitions at once."""

    async def all_of_them() -> list[Announcement]:
        under_way = [
            flow.loop.call_soon_with_future(epochs.announce(("t", partition), one)) for epochs, partition, one in asked
        ]
        return [await one for one in under_way]

    return flow.loop.run(all_of_them())


def test_the_first_announcement_of_an_epoch_is_stored_and_returned_to_later_writers(flow: FakeFlow) -> None:
    here, there = flow.epochs(), flow.epochs()
    assert announce(flow, (here, 0, wanted(1)), (there, 0, wanted(2))) == [wanted(1), wanted(1)]
    assert announce(flow, (there, 0, wanted(3))) == [wanted(1)]
    assert flow.known()["t", 0].announced == {0: wanted(1)}
    assert announce(flow, (there, 0, wanted(3, epoch=1))) == [wanted(3, epoch=1)]


def test_a_request_has_an_announcement_for_each_partition_of_the_progress_topic(flow: FakeFlow) -> None:
    flow.target.create(PROGRESS_TOPIC, 25)
    epochs = flow.epochs()
    asked = [wanted(number) for number in range(300)]
    assert announce(flow, *((epochs, number, one) for number, one in enumerate(asked))) == asked
    assert flow.target.requests["append"] < 40  # 300 over 25 partitions, not spread evenly


@pytest.mark.parametrize(
    ("code", "error"),
    [(6, kafka_errors.NotLeaderForPartitionError), (29, kafka_errors.TopicAuthorizationFailedError)],
)
def test_an_error_is_raised_where_it_belongs(flow: FakeFlow, code: int, error: type[kafka_errors.KafkaError]) -> None:
    flow.target.append_errors[PROGRESS_TOPIC, 0].append(code)
    with pytest.raises(error):
        announce(flow, (flow.epochs(), 0, wanted(1)))
    assert announce(flow, (flow.epochs(), 0, wanted(1))) == [wanted(1)]


def test_too_few_replicas_of_the_progress_topic_are_named(flow: FakeFlow) -> None:
    flow.target.append_errors[PROGRESS_TOPIC, 0].append(19)
    flow.target.in_sync[PROGRESS_TOPIC, 0] = (1, 1)
    with pytest.raises(TooFewReplicas, match=f"B refuses appends to {PROGRESS_TOPIC}-0: replication factor 1"):
        announce(flow, (flow.epochs(), 0, wanted(1)))


def test_without_a_progress_topic_it_is_tried_again(flow: FakeFlow) -> None:
    del flow.target.logs[PROGRESS_TOPIC, 0]
    with pytest.raises(NotNow, match=f"the topic {PROGRESS_TOPIC} does not exist yet"):
        announce(flow, (flow.epochs(), 0, wanted(1)))


def test_an_announcement_that_is_not_there_any_more_is_tried_again(flow: FakeFlow) -> None:
    announce(flow, (flow.epochs(), 0, wanted(1)))
    flow.target.log(PROGRESS_TOPIC).batches.clear()
    with pytest.raises(NotNow, match="could not be read back"):
        announce(flow, (flow.epochs(), 0, wanted(1)))


def test_partitions_without_progress_begin_at_the_start_position(flow: FakeFlow) -> None:
    for _ in range(5):
        flow.produce(b"a")
    flow.source.log("t").open_since = 4
    assert flow.loop.run(flow.epochs().first_offset(("t", 0))) == 0
    assert flow.loop.run(flow.epochs(start_at=LATEST).first_offset(("t", 0))) == 4


@pytest.mark.parametrize(
    ("kind", "offset", "records", "begins"),
    [
        (GapKind.RETENTION, 2, None, 3),
        (GapKind.CREATED_AGAIN, None, None, 3),
        (GapKind.TRUNCATED, 6, None, 6),
        (GapKind.TRUNCATED, 1, None, 3),
        (GapKind.TRUNCATED, 99, None, 10),
        (GapKind.TARGET_LOST, None, 2, 6),
        (GapKind.TARGET_LOST, None, 99, 3),
        (GapKind.TARGET_HOLE, None, 2, 8),
    ],
)
def test_where_an_epoch_after_a_gap_begins(
    flow: FakeFlow, kind: GapKind, offset: int | None, records: int | None, begins: int
) -> None:
    for _ in range(10):
        flow.produce(b"a")
    flow.source.log("t").delete_before(3)
    copy = flow.copy_of()
    copy.resume_at(8, epoch=0, sequence=8, last_downstream=7, node=1)
    gap = copy.gap("gap", kind, offset=offset, records=records)
    assert flow.loop.run(flow.epochs().first_left(copy, gap)) == begins


def test_a_source_that_seems_to_end_before_the_position_is_asked_again_first(flow: FakeFlow) -> None:
    flow.produce(b"a")
    copy = flow.copy_of()
    copy.resume_at(8, epoch=0, sequence=8, last_downstream=7, node=1)
    gap = copy.gap("lost", GapKind.TARGET_LOST, records=1)
    with pytest.raises(NotNow, match="the source ends at 1, before the copy's 8"):
        flow.loop.run(flow.epochs().first_left(copy, gap))
    for _ in range(7):
        copy.retry.failed(0)
    assert flow.loop.run(flow.epochs().first_left(copy, gap)) == 0

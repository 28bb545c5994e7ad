"""Which remote topics have lost their source topic, and which of them are deleted: in every doubt none."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from mirrorless.clusters.cluster_requests import NotThere
from mirrorless.errors import ClusterError, ClusterUnavailable, ConfigurationError
from mirrorless.metadata import missing_topics
from mirrorless.metadata.kind import BothEnds
from mirrorless.metadata.kind_results import compare_kinds, plan_kinds, synced_kinds
from mirrorless.metadata.kinds import topic_deletes
from mirrorless.metadata.kinds.topic_deletes import KIND, copied_orphans, orphans
from mirrorless.metadata.missing_topics import DELAY_S, AppendTime, MissingTopics, parse
from mirrorless.metadata.recreated_topics import CreatedAgain, OwnCopy
from tests.support.drill_facts import flow_with

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mirrorless.clusters.admin import Admin
    from mirrorless.metadata.actions import ClusterDifference
    from mirrorless.settings import Cluster, Flow

NOBODY = cast("Admin", None)
COPY = OwnCopy(source_id="s1", remote_id="r1")
NOTES = "mm2-deletes.a.internal"


class World:
    """A source that lost `old`, whose remote topic is a proven copy that was noted as missing long ago."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.gone: frozenset[str] | NotThere | ClusterError = frozenset({"old"})
        self.proof: OwnCopy | str = COPY
        self.progress = frozenset({"old", "orders"})
        self.missing = MissingTopics({"old": (COPY, AppendTime(0, 4))}, AppendTime(DELAY_S * 1000, 4))
        self.stopped: str | None = None
        self.deleted: list[str] = []
        self.noted: list[str] = []
        self.forgotten: list[str] = []
        self.before_confirming: Callable[[], None] = lambda: None
        monkeypatch.setattr(topic_deletes, "_deleted", self._asked)
        monkeypatch.setattr(topic_deletes, "delete_by_id", self._delete)
        monkeypatch.setattr(topic_deletes, "not_started", lambda *_: self.stopped)
        monkeypatch.setattr(missing_topics, "read", lambda _: self.missing)
        monkeypatch.setattr(missing_topics, "note", lambda _flow, _admin, missing: self.noted.extend(missing or ["-"]))
        monkeypatch.setattr(missing_topics, "forget", lambda _flow, topics: self.forgotten.extend(topics))

    def _asked(self, _: Cluster, topics: list[str]) -> frozenset[str] | NotThere:
        if isinstance(self.gone, ClusterError):
            raise self.gone
        return self.gone if isinstance(self.gone, NotThere) else self.gone & set(topics)

    def _delete(self, _: Cluster, ids: Mapping[str, str], confirm: Callable[[], None]) -> None:
        self.before_confirming()
        confirm()
        self.deleted += [f"{name} {number}" for name, number in ids.items()]

    def prepare(self) -> None:
        """As `Copied`."""

    def created_again(self, _: Mapping[str, int]) -> CreatedAgain:
        """As `Copied`."""
        return CreatedAgain()

    def topics(self) -> frozenset[str]:
        """As `Copied`."""
        return self.progress

    def own_copies(self, remote: Mapping[str, str]) -> Mapping[str, OwnCopy | str]:
        """As `Copied`."""
        return dict.fromkeys(remote, self.proof)

    def ends(self, flow: Flow, *, source: Sequence[str], target: Sequence[str], reads: bool = True) -> BothEnds:
        return BothEnds(
            flow=flow,
            source=NOBODY,
            target=NOBODY,
            remote={topic: f"a.{topic}" for topic in source},
            source_topics=frozenset(source),
            target_topics=frozenset(target) | {NOTES},
            copied=self if reads else None,
        )

    def planned(self, **settings: object) -> list[ClusterDifference]:
        """What is compared, with the kind's own errors."""
        flow = flow_with(**{"topics": (".*",), "sync_topic_deletes": True} | settings)
        kept = flow.replication_policy_class.endswith("IdentityReplicationPolicy")
        target = ["old", "orders"] if kept else ["a.old", "a.orders"]
        self.both = self.ends(flow, source=["orders"], target=target)
        found = KIND.compare(self.both)
        assert not isinstance(found, NotThere)
        return found

    def changes(self, **settings: object) -> list[object]:
        return [one.change and one.change["do"] for one in self.planned(**settings)]

    def applied(self, **settings: object) -> list[str | None]:
        assert KIND.apply is not None
        wanted = [one for one in self.planned(**settings) if one.change is not None]
        return KIND.apply(self.both, wanted)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


def test_only_remote_topics_of_the_flow() -> None:
    flow = flow_with(topics=("orders.*",))
    target = ["a.orders", "a.orders-old", "a.payments", "c.orders-old", "orders-old", "a.checkpoints.internal"]
    assert orphans(flow, source=["orders"], target=target) == {"a.orders-old": "orders-old"}


def test_with_kept_names_a_topic_of_the_target_may_be_its_own() -> None:
    flow = flow_with(topics=("orders.*",), replication_policy_class="IdentityReplicationPolicy")
    assert orphans(flow, source=["orders"], target=["orders", "orders-old"]) == {}
    copied = ["orders", "orders-copied", "orders-left"]
    there = ["orders", "orders-old", "orders-copied"]
    assert copied_orphans(flow, copied, source=["orders"], target=there) == {"orders-copied": "orders-copied"}


def test_an_internal_topic_is_never_deleted() -> None:
    flow = flow_with(topics=(".*",), replication_policy_class="IdentityReplicationPolicy")
    own = ["mm2-offsets.a.internal", "__consumer_offsets", "heartbeats", "c.checkpoints.internal", NOTES]
    assert copied_orphans(flow, own, source=[], target=own) == {}
    prefixed = flow_with(topics=(".*",))
    own = ["a.heartbeats", "a.checkpoints.internal"]
    assert copied_orphans(prefixed, ["heartbeats", "checkpoints.internal"], source=[], target=own) == {}


def test_nothing_is_deleted_by_default(world: World) -> None:
    flow = flow_with(topics=(".*",))
    assert KIND not in synced_kinds(flow)
    (one,) = world.planned(sync_topic_deletes=False)
    assert (one.change, one.reason) == (None, "mirrorless.sync.topic.deletes is false")
    assert one.text == "delete a.old on b: old no longer exists on a"


def test_it_has_a_setting_of_its_own() -> None:
    assert synced_kinds(flow_with(sync_topic_deletes=True)) == [KIND]
    with pytest.raises(ConfigurationError, match=r"mirrorless\.sync\.kinds"):
        synced_kinds(flow_with(sync_kinds=("topic-deletes",)))


def test_a_proven_copy_is_deleted_by_its_id_after_the_delay(world: World) -> None:
    (one,) = world.planned()
    assert one.text == "delete a.old on b: old no longer exists on a"
    assert one.reason == "mirrorless.sync.topic.deletes=true, and it was seen missing for 600 s"
    assert world.applied() == [None]
    assert (world.deleted, world.forgotten) == (["a.old r1"], ["old"])


def test_with_kept_names_too(world: World) -> None:
    assert world.applied(replication_policy_class="IdentityReplicationPolicy") == [None]
    assert world.deleted == ["old r1"]


def test_a_topic_that_was_just_found_missing_is_noted_only(world: World) -> None:
    world.missing = MissingTopics({})
    (one,) = world.planned()
    assert one.text == "wait before deleting a.old on b: old no longer exists on a"
    assert one.reason == "not noted yet; deleted by a later sync, once that is 600 s"
    assert world.applied() == [None]
    assert (world.deleted, world.noted) == ([], ["old"])


@pytest.mark.parametrize(
    ("looked", "does"),
    [
        (AppendTime(DELAY_S * 1000 - 1, 4), "look"),
        (AppendTime(DELAY_S * 1000 * 9, 5), "note"),  # by the clock of another leader
        (AppendTime(DELAY_S * 1000 * 9, None), "note"),
        (None, "note"),
    ],
)
def test_the_delay_is_one_by_the_clock_of_one_broker(world: World, looked: AppendTime | None, does: str) -> None:
    world.missing = MissingTopics({"old": (COPY, AppendTime(0, 4))}, looked)
    assert world.changes() == [does]
    assert world.applied() == [None]
    assert world.deleted == []


def test_a_note_on_an_earlier_topic_of_the_name_does_not_count(world: World) -> None:
    world.missing = MissingTopics({"old": (OwnCopy("s0", "r1"), AppendTime(0, 4))}, AppendTime(10**9, 4))
    assert world.changes() == ["note"]


def test_notes_without_append_times_are_no_delay(world: World) -> None:
    world.missing = MissingTopics({"old": (COPY, AppendTime(None, 4))}, AppendTime(None, 4))
    (one,) = world.planned()
    assert one.change is None
    assert one.reason == f"not deleted: {NOTES} on b has no append times (LogAppendTime)"


@pytest.mark.parametrize("policy", ["DefaultReplicationPolicy", "IdentityReplicationPolicy"])
def test_without_a_proof_nothing_is_deleted(world: World, policy: str) -> None:
    world.proof = "records of others cannot be excluded: a.old-0: it ends at offset 7"
    (one,) = world.planned(replication_policy_class=policy)
    assert one.change is None
    assert one.reason == f"not deleted: {world.proof}"
    (result,) = compare_kinds(world.both, every=False)
    plan = plan_kinds([result])
    assert (plan.actions, [each.reason for each in plan.not_moved]) == ((), [one.reason])


def test_a_topic_that_is_hidden_or_unknown_counts_as_present(world: World) -> None:
    world.gone = frozenset()
    assert world.changes() == ["forget"]  # the delay begins again
    assert world.applied() == [None]
    assert (world.deleted, world.forgotten) == ([], ["old"])


def test_while_the_source_does_not_answer_nothing_is_planned(world: World) -> None:
    world.gone = ClusterUnavailable("no answer", cluster="a")
    with pytest.raises(ClusterUnavailable):
        world.planned()


def test_a_source_without_any_topic_of_the_flow_may_have_lost_all(world: World) -> None:
    flow = flow_with(topics=(".*",), sync_topic_deletes=True)
    found = KIND.compare(world.ends(flow, source=[], target=["a.old"]))
    assert not isinstance(found, NotThere)
    assert [one.change for one in found] == [None]
    assert "shows no topic that the flow replicates" in found[0].reason


def test_topics_that_both_clusters_write_to_are_kept(world: World) -> None:
    (one,) = world.planned(both_directions="skip", replication_policy_class="IdentityReplicationPolicy")
    assert one.change is None
    assert "applications of both clusters write" in one.reason


def test_a_flow_that_is_paused_or_stopped_deletes_nothing(world: World) -> None:
    world.stopped = "a->b is stopped"
    (one,) = world.planned()
    assert (one.change, one.reason) == (None, "not deleted: a->b is stopped")


def test_where_progress_is_not_read_nothing_is_changed(world: World) -> None:
    flow = flow_with(topics=(".*",), sync_topic_deletes=True)
    found = KIND.compare(world.ends(flow, source=["orders"], target=["a.old"], reads=False))
    assert not isinstance(found, NotThere)
    assert [one.reason for one in found] == ["not deleted: `mirrorless plan` shows whether it may be"]


def _back(world: World) -> None:
    world.gone = frozenset()


def _hidden(world: World) -> None:
    world.gone = NotThere("no right", lacks_right=True)


def _silent(world: World) -> None:
    world.gone = ClusterUnavailable("no answer", cluster="a")


def _written(world: World) -> None:
    world.proof = "records of others cannot be excluded"


def _stopped(world: World) -> None:
    world.stopped = "a->b is stopped"


def _another(world: World) -> None:
    world.proof = OwnCopy("s2", "r1")


@pytest.mark.parametrize("happens", [_back, _hidden, _silent, _written, _stopped, _another])
def test_all_is_checked_again_before_the_request_is_sent(world: World, happens: Callable[[World], None]) -> None:
    world.before_confirming = lambda: happens(world)
    (error,) = world.applied()
    assert error is not None
    assert (world.deleted, world.forgotten) == ([], [])


def test_notes_are_read_in_order() -> None:
    note = b'{"sourceId": "s1", "remoteId": "r1"}'
    first, second, third = (AppendTime(number, 4) for number in (1, 2, 3))
    found = parse(
        [
            (b"missing:old", note, first),
            (b"missing:back", note, first),
            (b"looked", b"{}", first),
            (b"missing:back", None, second),
            (b"missing:odd", b"{", second),
            (b"other", b"x", second),
            (b"looked", b"{}", third),
        ]
    )
    assert found == MissingTopics({"old": (COPY, first)}, third)
    assert found.waited("old", COPY) == 0.002
    assert found.waited("back", COPY) is None

"""Reads both ends of a flow and plans: the I/O between two clusters and the pure rules. Writes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError

from mirrorless.clusters.acls import NoAcls, topic_acls
from mirrorless.clusters.admin import Admin
from mirrorless.clusters.configs import topic_configs
from mirrorless.clusters.identity import ends_of
from mirrorless.clusters.replication_factors import broker_count
from mirrorless.clusters.side_by_side import each, side_by_side
from mirrorless.clusters.target_state import waits_for_its_turn
from mirrorless.clusters.topics import partition_counts, replica_counts, undescribed
from mirrorless.errors import ClusterError
from mirrorless.metadata import acl_record
from mirrorless.metadata.acl_plan import AclSnapshot, acl_notes, plan_acls
from mirrorless.metadata.acl_record import AclRecord
from mirrorless.metadata.actions import Action, CreateTopic, Plan, Problem
from mirrorless.metadata.config_plan import creation_config, plan_configs
from mirrorless.metadata.creation_probe import CreationProbe
from mirrorless.metadata.fences import NO_FENCES, standing_fences
from mirrorless.metadata.identical_configs import with_identical_offsets
from mirrorless.metadata.kind import BothEnds
from mirrorless.metadata.kind_results import compare_kinds, plan_kinds
from mirrorless.metadata.loop_check import refuse_loops
from mirrorless.metadata.plan import (
    came_back,
    divide,
    missing,
    named_in_vain,
    plan_internal_topics,
    plan_topics,
    within_brokers,
)
from mirrorless.metadata.recreated_topics import changes_topic, without_other_copies
from mirrorless.metadata.retention_note import retention_note
from mirrorless.metadata.serverless import not_created_with, not_synced, target_filter
from mirrorless.metadata.service_records import examine_records, unread_note
from mirrorless.metadata.state_topics import look_at
from mirrorless.metadata.timestamp_limits import with_lifted_limits
from mirrorless.operation_log.topic import OPERATIONS_TOPIC
from mirrorless.selection import LeftOut

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mirrorless.clusters.acls import Acl
    from mirrorless.clusters.admin import Refusal
    from mirrorless.clusters.configs import Configs
    from mirrorless.metadata.fences import StandingFences
    from mirrorless.metadata.kind_results import KindResult
    from mirrorless.metadata.recreated_topics import Copied
    from mirrorless.settings import Flow


class Part(Enum):
    """The parts of the metadata that are synced."""

    TOPICS = "topics"
    CONFIGS = "configs"
    ACLS = "ACLs"
    KINDS = "rights and limits"


@dataclass(frozen=True, slots=True)
class Admins:
    """Admin clients of a flow's two ends; they may be kept between sync runs."""

    source: Admin
    target: Admin

    @classmethod
    def of(cls, flow: Flow) -> Admins:
        """Connect to both ends."""
        return cls(Admin(flow.source), Admin(flow.target))


def switched_on(flow: Flow) -> dict[Part, bool]:
    """Which parts are enabled by the settings of a flow; topics are checked at least once."""
    return {
        Part.TOPICS: True,
        Part.CONFIGS: flow.sync_topic_configs_enabled,
        Part.ACLS: flow.sync_topic_acls_enabled,
        Part.KINDS: bool(flow.sync_kinds) or flow.sync_topic_deletes,
    }


class MetadataPlanner:
    """Plans for one flow from the state of both ends when it is created; `record` has the ACLs that the flow added.

    `copied` is asked before a remote topic is changed: if the source topic was deleted and recreated since it was
    copied, the remote topic is not changed. Without `copied` this is not checked.

    Raises `SameClusterError` if there is only one cluster, `LoopError` if topics would be replicated in a loop and
    `ClusterError` if an end does not answer.
    """

    def __init__(self, flow: Flow, admins: Admins, *, copied: Copied | None = None) -> None:
        self._flow = flow
        self._admins = admins
        self._copied = copied
        source, target = side_by_side(admins.source.metadata, admins.target.metadata)
        self.ends = ends_of(flow, source=admins.source, target=admins.target, at_source=source, at_target=target)
        self.record = AclRecord(flow, source_id=self.ends.source_id, admin=admins.target)
        self._source, self._target = partition_counts(source), partition_counts(target)
        refuse_loops(flow, self._source.keys() | self._target.keys())
        self._stopped = waits_for_its_turn(flow, admins.target)
        self._fences = standing_fences(flow, admins.target) if OPERATIONS_TOPIC in self._target else NO_FENCES
        self._brokers = broker_count(source), broker_count(target)
        self._target_metadata = target
        if copied is not None and (flow.topics_rename or flow.inverts is not None):
            copied.prepare()  # which of two topics of one name was copied
        self._unread = examine_records(flow, admins.source, self._source)
        self._remote, left_out = divide(flow, self._source)
        self._left_out = tuple(one for one in left_out if one.kind is not LeftOut.NAME)
        self._nameless = [Problem(topic=one.topic, reason=one.reason) for one in left_out if one.kind is LeftOut.NAME]
        self._blind = [
            *_problems(undescribed(source), f"cannot be described on {flow.source.alias}", uncopied=True),
            *_problems(undescribed(target), f"cannot be described on {flow.target.alias}", uncopied=True),
        ]

    def plan(self, parts: Iterable[Part], *, thorough: bool = False, internal_topics: bool = True) -> Plan:
        """Plan these parts; raises `ClusterError` if an end does not answer.

        With `thorough` the plan has a note on every recreated topic, otherwise only on those that would be changed;
        and it has all that differs between the clusters and is not moved.
        With topics, the flow's `internal_topics` are checked too: whether they are compacted. The plan of a flow
        that waits for its turn has nothing else.
        """
        wanted = list(parts)
        if self._stopped is not None:
            return self._waiting(self._stopped, topics=Part.TOPICS in wanted)
        alias = self._flow.source.alias
        blank = (
            f"{alias} has no topics yet, or none that the flow's user may see: grant it DESCRIBE on those to replicate"
        )
        reads = [self._kept] if internal_topics and Part.TOPICS in wanted else []
        by_part = {
            Part.TOPICS: self._topics,
            Part.CONFIGS: self._configs,
            Part.ACLS: self._acls,
            Part.KINDS: lambda: plan_kinds(self.kinds(every=False)),
        }
        if thorough:
            wanted = [one for one in wanted if one is not Part.KINDS]
            reads.append(lambda: plan_kinds(self.kinds(every=True)))
        reads += [by_part[one] for one in wanted]
        plans = each(reads)
        actions, warnings = within_brokers(
            self._flow,
            (action for one in plans for action in one.actions),
            source=self._brokers[0],
            target=self._brokers[1],
        )
        nameless = self._nameless if Part.TOPICS in wanted else ()
        plan = Plan(
            actions=actions,
            left_out=self._left_out,
            problems=(*self._blind, *nameless, *(problem for one in plans for problem in one.problems)),
            notes=(
                *(() if self._source else (blank,)),
                *(named_in_vain(self._flow, self._source) if self._source else ()),
                *came_back(self._flow, self._remote),
                *(unread_note(alias, self._unread) if thorough else ()),
                *(note for one in plans for note in one.notes),
            ),
            warnings=warnings,
            not_moved=tuple(one for some in plans for one in some.not_moved),
        )
        return plan if self._copied is None else self._leave_alone(plan, self._copied, thorough=thorough)

    def _waiting(self, reason: str, *, topics: bool) -> Plan:
        """Plan the internal topics of a flow that waits for its turn, so that it can begin at once."""
        actions, warnings = within_brokers(
            self._flow,
            plan_internal_topics(self._flow, source=self._source, target=self._target) if topics else (),
            source=self._brokers[0],
            target=self._brokers[1],
        )
        return Plan(actions=actions, notes=(reason,), warnings=warnings)

    def _leave_alone(self, plan: Plan, copied: Copied, *, thorough: bool) -> Plan:
        """Remove actions that would change the copy of an earlier topic; checked last, as topics may be recreated."""
        origin = {name: topic for topic, name in self._remote.items() if name in self._target}
        concerned = set(origin) if thorough else {one.topic for one in plan.actions if changes_topic(one)} & set(origin)
        if not concerned:
            return plan
        found = copied.created_again({origin[name]: self._source[origin[name]] for name in concerned})
        return without_other_copies(plan, found, flow=self._flow.name, remote=self._remote)

    @property
    def both_ends(self) -> BothEnds:
        """What kinds compare."""
        return BothEnds(
            flow=self._flow,
            source=self._admins.source,
            target=self._admins.target,
            remote=self._remote,
            source_topics=frozenset(self._source),
            target_topics=frozenset(self._target),
            copied=self._copied,
        )

    def kinds(self, *, every: bool) -> list[KindResult]:
        """Compare the kinds that are synced, or `every` one; nothing for a flow that waits for its turn."""
        return [] if self._stopped is not None else compare_kinds(self.both_ends, every=every)

    @property
    def is_waiting(self) -> bool:
        """Whether the flow waits for its turn."""
        return self._stopped is not None

    @property
    def target_brokers(self) -> list[int]:
        """Ids of the target's brokers."""
        return sorted(self._target_metadata.brokers)

    @property
    def replicated(self) -> dict[str, int]:
        """The source topics that the flow replicates, with their partition counts."""
        return {topic: self._source[topic] for topic in self._remote}

    @property
    def remote_topics(self) -> Mapping[str, str]:
        """The remote topic of each source topic that the flow replicates."""
        return self._remote

    @property
    def target_partitions(self) -> Mapping[str, int]:
        """The target's topics with their partition counts."""
        return self._target

    def retention(self) -> tuple[str, ...]:
        """A note on topics with a shorter retention on the target, or none; raises `ClusterUnavailable`."""
        note = retention_note(
            self._flow,
            source=self._admins.source,
            target=self._admins.target,
            remote=self._remote,
            counts=self._source,
            replicas=replica_counts(self._target_metadata),
        )
        return () if note is None else (note,)

    def _fences_until_now(self) -> StandingFences:
        """Those of the beginning, and those that were put up since: what was read between may have either."""
        if OPERATIONS_TOPIC not in self._target:
            return NO_FENCES
        return self._fences | standing_fences(self._flow, self._admins.target)

    def _topics(self) -> Plan:
        chosen = target_filter(self._flow, on_creation=True)
        found, failed = topic_configs(self._admins.source, missing(self._remote, self._target))
        found = with_identical_offsets(self._flow, self._fences_until_now().without(found))
        configs = {topic: creation_config(chosen, one) for topic, one in found.items()}
        planned = plan_topics(
            self._flow, remote=self._remote, source=self._source, target=self._target, configs=configs
        )
        if found:
            planned = self._with_lifted_limits(planned, found)
        # Without its configs a compacted topic would be created as one whose records are deleted.
        reason = f"not created, because reading its configs failed on {self._flow.source.alias}"
        return Plan(
            actions=(*plan_internal_topics(self._flow, source=self._source, target=self._target), *planned),
            problems=_problems({topic: _told(one) for topic, one in failed.items()}, reason, uncopied=True),
            notes=tuple(not_created_with(self._flow, found)),
        )

    def _with_lifted_limits(self, planned: Iterable[Action], configs: Mapping[str, Configs]) -> list[Action]:
        """Create topics so that they accept old records; without DESCRIBE_CONFIGS on them the config sync does it."""
        chosen, origin = target_filter(self._flow, on_creation=True), {self._remote[topic]: topic for topic in configs}
        with CreationProbe(self._flow.target) as probe:
            defaults = probe.defaults(next(iter(origin)))
        return [
            with_lifted_limits(chosen, one, configs[topic], topic=topic, defaults=defaults)
            if isinstance(one, CreateTopic) and (topic := origin.get(one.topic)) is not None
            else one
            for one in planned
        ]

    def _kept(self) -> Plan:
        admins = self._admins
        there = {"at_source": self._source, "at_target": self._target}
        found = look_at(self._flow, source=admins.source, target=admins.target, **there)
        return Plan(problems=found.problems, notes=found.warnings)

    def _configs(self) -> Plan:
        remote = {topic: name for topic, name in self._remote.items() if name in self._target}
        (source, source_failed), (target, target_failed) = side_by_side(
            lambda: topic_configs(self._admins.source, remote),
            lambda: topic_configs(self._admins.target, remote.values()),
        )
        chosen = target_filter(self._flow, on_creation=False)
        source = with_identical_offsets(self._flow, self._fences_until_now().without(source))
        actions, notes = plan_configs(chosen, remote=remote, source=source, target=target)
        notes += not_synced(self._flow, remote=remote, source=source, target=target)
        reason = "reading its configs failed on {}"
        return Plan(
            actions=tuple(actions),
            problems=(
                *_problems(_all_told(source_failed), reason.format(self._flow.source.alias)),
                *_problems(_all_told(target_failed), reason.format(self._flow.target.alias)),
            ),
            notes=tuple(notes),
        )

    def _acls(self) -> Plan:
        source, target = each([partial(topic_acls, one) for one in (self._flow.source, self._flow.target)])
        for one in (source, target):
            if isinstance(one, NoAcls):
                text = f"ACLs are not synced: {one.reason}"
                return Plan(problems=(Problem(topic="*", reason=text),)) if one.lacks_right else Plan(notes=(text,))
        assert not isinstance(source, NoAcls)
        assert not isinstance(target, NoAcls)
        first: list[Action] = []
        notes: list[str] = []
        created: frozenset[Acl] | None = None
        if self._flow.acls_prune:
            created = self._created(first, notes)
        others = frozenset(self._target.keys() - self._source.keys() - set(self._remote.values()))
        snapshot = AclSnapshot(
            source=source - self._fences_until_now().acls, target=target, created=created, others=others
        )
        actions, problems = plan_acls(self._flow, acls=snapshot, remote=self._remote)
        notes += acl_notes(self._flow, snapshot)
        return Plan(actions=(*first, *actions), problems=tuple(problems), notes=tuple(notes))

    def _created(self, actions: list[Action], notes: list[str]) -> frozenset[Acl] | None:
        if acl_record.record_topic(self._flow) not in self._target:
            actions.append(acl_record.creation(self._flow))
            return frozenset()
        try:
            created, foreign = self.record.read()
        except ClusterError as error:
            notes.append(f"no ACL is removed: {error}")
            return None
        if foreign:
            notes.append(
                f"{foreign} ACLs that {self._flow.name} added when {self._flow.source.alias} was another cluster, "
                "or its remote topics had other names, are not changed"
            )
        return created


def _problems(reasons: Mapping[str, str], what: str, *, uncopied: bool = False) -> tuple[Problem, ...]:
    return tuple(
        Problem(topic=topic, reason=f"{what}: {reason}", uncopied=uncopied) for topic, reason in sorted(reasons.items())
    )


def _all_told(refusals: Mapping[str, Refusal]) -> dict[str, str]:
    return {topic: _told(one) for topic, one in refusals.items()}


def _told(refusal: Refusal) -> str:
    grant = "; grant DESCRIBE_CONFIGS on the topic" if refusal.code == KafkaError.TOPIC_AUTHORIZATION_FAILED else ""
    return f"{refusal.text}{grant}"

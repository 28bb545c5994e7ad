"""Moves consumer groups: commits the translation of their offsets on the cluster that applications move to."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from mirrorless.clusters.consumers import records_in
from mirrorless.clusters.groups import Committed, GroupOffsets, list_groups, refusals
from mirrorless.clusters.topics import high_watermarks
from mirrorless.errors import ClusterError
from mirrorless.filters import group_filter_for
from mirrorless.formats import Checkpoint
from mirrorless.metadata.plan import replicated
from mirrorless.modes import Modes
from mirrorless.offsets.checkpoint_pass import Checkpoints
from mirrorless.offsets.checkpoints import write_checkpoints
from mirrorless.offsets.failover_plan import failover_plan, skipped_by_group, skipping
from mirrorless.operation_log.records import EVERYTHING, OperationKind
from mirrorless.operations.results import count_of
from mirrorless.operations.steps.context import OperationStep, OwnershipLost, StepFailed
from mirrorless.policy import policy_for
from mirrorless.protocol.markers import RESERVED_OFFSETS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.offsets.failover_plan import Forecast
    from mirrorless.operations.steps.context import OperationContext

    ByGroup = dict[str, dict[TopicPartition, Committed]]
    Packed = dict[str, dict[str, dict[str, Any]]]

_ATTEMPTS: Final = 3
_FEW: Final = 100
"""Offsets of a partition in which records are counted: the others are markers, such as those that are reserved."""


class GroupsStep(OperationStep):
    """Groups with members get some time to read to the end and leave; then their last commit is translated.

    `wanted` and `before` are the offsets on the target after and before the step, by group, topic and partition,
    `upstream` those on the source that they are translated from; `created` are groups that did not exist there.
    """

    name = "groups"

    def plan(self, context: OperationContext) -> dict[str, Any]:
        """Wait for members to leave, and translate."""
        staying = _wait_for_members(context)
        with closing(Checkpoints(context.forward)) as passes:
            report = passes.emit()
        if report.left:
            raise StepFailed(f"{count_of(len(report.left), 'group')} could not be translated in time", report.left)
        forecast = failover_plan(context.forward, groups=context.wants_group)
        troubles = [*dict.fromkeys([*report.troubles, *forecast.troubles])]
        if unread := [line for line in troubles if line.startswith(("group ", "cluster "))]:
            raise StepFailed("not every group could be read", unread)
        context.warnings += troubles
        there = _selected(context)
        some = [one for one in forecast.forecasts if there is None or one.remote_topic in there]
        return moves(context, some) | {"staying": staying}

    def act(self, context: OperationContext, planned: dict[str, Any]) -> dict[str, Any]:
        """Commit, except where the group's offset on the target is not what it was."""
        wanted, before = unpacked(planned["wanted"]), unpacked(planned["before"])
        now = _committed(context, wanted)
        left: list[str] = []
        to_commit: ByGroup = {}
        for group, offsets in wanted.items():
            for place, offset in offsets.items():
                at = now.get(group, {}).get(place)
                if at is not None and _is_ours(at, offset):
                    continue
                if at == before.get(group, {}).get(place):
                    to_commit.setdefault(group, {})[place] = offset
                else:
                    offset_now = None if at is None else at.offset
                    left.append(f"group {group}, {place[0]}-{place[1]}: it is at {offset_now} on the target now")
        with _changing(context, planned):
            refused = _commit(context, to_commit)
        if refused and context.request.kind is not OperationKind.FAILOVER:
            raise StepFailed(
                f"offsets could not be committed on {context.forward.target.alias}; "
                "grant the rights, let its members leave, or leave the groups out (--groups)",
                refused,
            )
        self._write_checkpoints(context, planned, lambda one, _: replace(one, committed=one.downstream))
        return planned | {"left": left, "refused": refused}

    def undo(self, context: OperationContext, data: dict[str, Any]) -> None:
        """Restore the offsets that the step wrote, and delete the groups that it created."""
        with _changing(context, data):
            context.warnings += _restore(context, data, unpacked(data["before"]))

        def as_before(one: Checkpoint, before: int | None) -> Checkpoint:
            """Only an offset of this program's was moved back; whose the others were is not known here."""
            return replace(one, committed=before if (before or 0) > one.downstream else None)

        self._write_checkpoints(context, data, as_before)

    def _write_checkpoints(
        self,
        context: OperationContext,
        data: dict[str, Any],
        changed: Callable[[Checkpoint, int | None], Checkpoint],
    ) -> None:
        """Write what was committed last into checkpoints: after the commit, or the groups would seem to have consumed.

        `changed` also gets the offset of before. Without checkpoints only a later move back of these groups is lost.
        """
        if "upstream" not in data or not context.forward.writes_checkpoints:
            return
        before = unpacked(data["before"])
        found = [
            changed(
                Checkpoint(
                    group=group,
                    topic=topic,
                    partition=partition,
                    upstream=data["upstream"][group][topic][str(partition)],
                    downstream=one.offset,
                    metadata=one.metadata,
                ),
                None if (last := before.get(group, {}).get((topic, partition))) is None else last.offset,
            )
            for group, offsets in unpacked(data["wanted"]).items()
            for (topic, partition), one in offsets.items()
        ]
        if not found:
            return
        try:
            write_checkpoints(context.forward, found)
        except ClusterError as error:
            context.warnings.append(f"checkpoints of {count_of(len(found), 'offset')} are not written: {error}")

    def text(self, data: dict[str, Any]) -> str:
        """Return the result in one line."""
        again = sum(data["read_again"].values())
        parts = [f"{count_of(len(data['wanted']), 'group')} moved", f"{count_of(again, 'record')} read again"]
        if skipped := sum(data.get("skipped", {}).values()):
            parts.append(f"up to {count_of(skipped, 'record')} skipped")
        for key, words in (
            ("staying", "with members on the source"),
            ("on_target", "with members on the target, left as they are"),
        ):
            if data[key]:
                parts.append(f"{count_of(len(data[key]), 'group')} {words}")
        if data["untranslated"]:
            parts.append(f"{count_of(len(data['untranslated']), 'offset')} without a translation")
        return ", ".join(parts)


def _selected(context: OperationContext) -> set[str] | None:
    """Topics of the target whose offsets move; None if all do. Of a returning group, also the topic itself."""
    if context.request.topics == EVERYTHING:
        return None
    counts = context.recorded_counts()
    policy, modes = policy_for(context.forward), Modes(context.forward)
    own = {name for topic in counts for name in (policy.original_topic(topic), modes.name_there(topic))}
    return {*replicated(context.forward, counts).values(), *own}


def _wait_for_members(context: OperationContext) -> dict[str, int]:
    """Wait until groups with members have read everything, or have left; returns the others, and what they lack.

    Writers are blocked meanwhile, so a group that has committed the ends has nothing to read any more.
    """
    selects = group_filter_for(context.forward).selects
    until = time.monotonic() + context.request.wait_groups_s
    while True:
        activity, _ = list_groups(context.source)
        staying = _unread(
            context,
            sorted(
                group
                for group, state in activity.items()
                if state.may_have_members and selects(group) and context.wants_group(group)
            ),
        )
        if not staying or not context.wait(until):
            return staying


def _unread(context: OperationContext, groups: Iterable[str]) -> dict[str, int]:
    """How many records each group has not committed, at most; groups that have read everything are omitted.

    A few offsets are looked at, since a transaction's marker at the end is no record.
    """
    ends: dict[str, list[int]] = context.operation.data("drain")["ends"]
    found: dict[str, int] = {}
    policy = policy_for(context.forward)
    with closing(GroupOffsets(context.forward.source)) as offsets:
        for group, some in offsets.committed(groups):
            if isinstance(some, str):
                found[group] = 0
                continue
            spans: dict[TopicPartition, tuple[int, int]] = {}
            for topic in {topic for topic, _ in some if topic in ends}:
                for partition, end in enumerate(ends[topic]):
                    one = some.get((topic, partition))
                    spans[topic, partition] = (0 if one is None else one.offset, end)
            # Copies of the target's topics, in which a group returns.
            returning = [place for place in some if policy.topic_source(place[0]) == context.request.target]
            for place, end in high_watermarks(context.source, returning)[0].items():
                spans[place] = (some[place].offset, end)
            left = {place: span for place, span in spans.items() if span[1] > span[0]}
            number = sum(end - begin for begin, end in left.values())
            if 0 < number <= len(left) * (_FEW + RESERVED_OFFSETS):
                number = sum(records_in(context.forward.source, left).values())
            if number:
                found[group] = number
    return found


def _committed(context: OperationContext, groups: Iterable[str]) -> ByGroup:
    found: ByGroup = {}
    with closing(GroupOffsets(context.forward.target)) as offsets:
        for group, some in offsets.committed(groups):
            if isinstance(some, str):
                raise StepFailed(f"offsets of group {group} on {context.forward.target.alias} cannot be read: {some}")
            found[group] = some
    return found


def _commit(context: OperationContext, wanted: ByGroup) -> list[str]:
    """Commit; returns a line for each group or partition that was refused."""
    with closing(GroupOffsets(context.forward.target)) as offsets:
        outcomes = offsets.commit(wanted)
    context.warnings += offsets.shortened
    return [line for group, outcome in outcomes.items() for line in refusals(group, outcome)]


@contextmanager
def _changing(context: OperationContext, data: dict[str, Any]) -> Iterator[None]:
    """Change offsets; those that a process changes which lost the operation before or meanwhile are set as logged.

    Brokers cannot bind a commit from outside of a group to the operation. `data` is the step's.
    """
    context.check()
    try:
        yield
        context.check()
    except OwnershipLost:
        for _ in range(_ATTEMPTS):
            logged = _logged(context, data)
            _restore(context, data, logged, is_late=True)
            if _logged(context, data) == logged:  # no other operation began meanwhile
                break
        raise


def _logged(context: OperationContext, data: dict[str, Any]) -> ByGroup:
    """Return the offsets that groups of the step have on the target, as the logs say: those of before it if undone."""
    found = unpacked(data["before"])
    for one in sorted(context.logged().by_id.values(), key=lambda one: one.number):
        if one.number >= context.operation.number and one.request.target == context.request.target:
            for group, offsets in unpacked(one.data(GroupsStep.name).get("wanted", {})).items():
                found.setdefault(group, {}).update(offsets)
    return found


def _restore(context: OperationContext, data: dict[str, Any], right: ByGroup, *, is_late: bool = False) -> list[str]:
    """Set offsets that the step wrote, and delete those that are not in `right`; returns a line for each failure.

    `is_late` says that this process may just have undone the step too: what it restored or deleted is set as well.
    """
    wanted, before = unpacked(data["wanted"]), unpacked(data["before"])
    now = _committed(context, wanted)
    back: ByGroup = {}
    lines: list[str] = []
    with closing(GroupOffsets(context.forward.target)) as groups:
        for group, offsets in wanted.items():
            there, then = now.get(group, {}), before.get(group, {})
            ours = [place for place, offset in offsets.items() if place in there and _is_ours(there[place], offset)]
            if is_late:
                ours += [place for place in offsets if place not in ours and there.get(place) == then.get(place)]
            known = right.get(group, {})
            restored = {place: known[place] for place in ours if place in known and there.get(place) != known[place]}
            if restored:
                back[group] = restored
            fresh = [place for place in ours if place in there and place not in known]
            if fresh and not (group in data["created"] and len(fresh) == len(there)):
                lines += groups.delete(group, fresh)
        lines += groups.delete_groups(
            group
            for group in data["created"]
            if not right.get(group) and now.get(group) and _are_ours(now[group], wanted[group])
        )
        outcomes = groups.commit(back)
    context.warnings += groups.shortened
    return lines + [line for group, outcome in outcomes.items() for line in refusals(group, outcome)]


def _is_ours(at: Committed, wanted: Committed) -> bool:
    """Whether an offset is the one that was to be committed; its metadata may have been left out."""
    return at.offset == wanted.offset and at.metadata in ("", wanted.metadata)


def _are_ours(at: Mapping[TopicPartition, Committed], wanted: Mapping[TopicPartition, Committed]) -> bool:
    return all(place in wanted and _is_ours(one, wanted[place]) for place, one in at.items())


def moves(context: OperationContext, forecasts: Sequence[Forecast]) -> dict[str, Any]:
    """Return what is recorded of the groups to move, and warn of those that would skip records."""
    known = list_groups(context.target)[0]
    chosen = [
        one
        for one in forecasts
        if one.target_offset is not None and one.continues_at is not None and one.continues_at != one.committed
    ]
    wanted: ByGroup = {}
    upstream: dict[str, dict[str, dict[str, int]]] = {}
    for one in chosen:
        offsets = wanted.setdefault(one.group, {})
        offsets[one.remote_topic, one.partition] = Committed(one.continues_at or 0, one.metadata)
        numbers = upstream.setdefault(one.group, {}).setdefault(one.remote_topic, {})
        numbers[str(one.partition)] = one.source_offset
    before = _committed(context, wanted)
    again: Counter[str] = Counter()
    for one in forecasts:
        again[one.group] += one.read_again or 0
    context.warnings += skipping(forecasts, context.forward.target)
    return {
        "wanted": packed(wanted),
        "before": packed(
            {
                group: {place: before[group][place] for place in offsets if place in before[group]}
                for group, offsets in wanted.items()
            }
        ),
        "upstream": upstream,
        "created": [group for group in wanted if group not in known],
        "read_again": dict(sorted(again.items())),
        "skipped": skipped_by_group(forecasts),
        "staying": {},
        "on_target": sorted({one.group for one in forecasts if one.has_members}),
        "untranslated": [
            f"group {one.group}: {one.topic}-{one.partition} at {one.source_offset}: {one.how}"
            for one in forecasts
            if one.target_offset is None
        ],
    }


def packed(offsets: Mapping[str, Mapping[TopicPartition, Committed]]) -> Packed:
    """Return offsets as JSON: a number, or with metadata, which Kafka Streams needs, a pair."""
    packed: Packed = {}
    for group, some in offsets.items():
        topics = packed.setdefault(group, {})
        for (topic, partition), one in some.items():
            topics.setdefault(topic, {})[str(partition)] = [*one] if one.metadata else one.offset
    return packed


def unpacked(packed: Packed) -> ByGroup:
    """Return what `packed` was made of."""
    return {
        group: {
            (topic, int(number)): Committed(*at) if isinstance(at, list) else Committed(at, "")
            for topic, some in topics.items()
            for number, at in some.items()
        }
        for group, topics in packed.items()
    }

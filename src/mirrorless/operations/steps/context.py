"""What steps have in common: the flow, the clients of both clusters, and the operation's state."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from mirrorless.clusters.admin import Admin
from mirrorless.clusters.topics import partition_counts
from mirrorless.errors import OperationError
from mirrorless.metadata.service_records import replicated_on
from mirrorless.operation_log.records import Operations
from mirrorless.policy import policy_for
from mirrorless.settings.patterns import compile_patterns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mirrorless.clusters.target_state import OperationWriter
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.operation_log.records import OperationState, Request
    from mirrorless.settings import Flow, Settings

LOOK_S: Final = 0.2
"""How often a step looks again at what it waits for."""


class StepFailed(Exception):
    """A step that cannot be done: before applications move, everything is undone. `lines` has one for each object."""

    def __init__(self, reason: str, lines: Sequence[str] = ()) -> None:
        self.reason = reason
        self.lines = tuple(lines)
        super().__init__(reason)


class OwnershipLost(OperationError):
    """Another process runs the operation, or may: this one must not change anything any more."""


@dataclass
class OperationContext:
    """One operation in this process; `check` raises `OwnershipLost` unless this process still owns it.

    `forward` is the flow along which applications move, `reverse` the opposite one, None if the file has none.
    `earlier` are all operations of the pair, `unreachable` the cluster that did not answer at the beginning,
    if any. `say` reports what happens. `writer` is what target states are written as. `drained_at` is when this process
    read the ends of the source, as `time.monotonic`; None if another one did. `logged` reads the logs, and returns the
    operations of any pair that they have now. `follows_suspect` is as in `Ownership`.
    """

    settings: Settings
    forward: Flow
    reverse: Flow | None
    operation: OperationState
    check: Callable[[], None]
    say: Callable[[str], None]
    earlier: Operations
    writer: OperationWriter
    logged: Callable[[], Operations] = Operations
    follows_suspect: bool = False
    unreachable: frozenset[str] = frozenset()
    drained_at: float | None = None
    warnings: list[str] = field(default_factory=list)

    @property
    def request(self) -> Request:
        """What the operation was asked to do."""
        return self.operation.request

    @cached_property
    def source(self) -> Admin:
        """A client of the cluster that applications leave."""
        return Admin(self.forward.source)

    @cached_property
    def target(self) -> Admin:
        """A client of the cluster that applications move to."""
        return Admin(self.forward.target)

    def counts(self) -> dict[str, int]:
        """The topics of the source that move, with their partitions: what the flow replicates, and was asked for.

        Heartbeats are written by flows, and stay.
        """
        policy = policy_for(self.forward)
        there = partition_counts(self.source.metadata())
        return {
            topic: there[topic]
            for topic in sorted(replicated_on(self.forward, self.source, there))
            if self.wants(topic) and not policy.is_heartbeats_topic(topic)
        }

    def recorded_counts(self) -> dict[str, int]:
        """The topics that the first step recorded, with their partitions; later steps are about these."""
        counts: dict[str, int] = (self.operation.data("fence") or self.operation.data("record"))["topics"]
        return counts

    @cached_property
    def wants(self) -> Callable[[str], bool]:
        """Whether a topic of the source was asked for; the flow's own filter applies too."""
        return matching(self.request.topics)

    @cached_property
    def wants_group(self) -> Callable[[str], bool]:
        """Whether a group was asked for; the flow's own filter applies too."""
        return matching(self.request.groups)

    def wait(self, until: float) -> bool:
        """Pause a moment; returns False once the monotonic time `until` has come. Raises if the owner changed."""
        self.check()
        left = until - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(LOOK_S, left))
        return True


class OperationStep(ABC):
    """One step. `name` is its key in the operation's state.

    `plan` returns what is about to be changed, which is recorded first; `act` gets that, also after a restart, and
    returns what is recorded at last. `undo` gets what was recorded last; it is for steps before `open`.
    """

    name: str

    def plan(self, context: OperationContext) -> dict[str, Any]:  # noqa: ARG002
        """Read, and return what `act` needs; writes nothing."""
        return {}

    @abstractmethod
    def act(self, context: OperationContext, planned: dict[str, Any]) -> dict[str, Any]:
        """Do it, or what is left of it. Raises `StepFailed`, `MirrorlessError`."""

    def undo(self, context: OperationContext, data: dict[str, Any]) -> None:  # noqa: B027 -- most change nothing
        """Revert it, or what was done of it. Raises `MirrorlessError`."""

    @abstractmethod
    def text(self, data: dict[str, Any]) -> str:
        """Return its result in one line."""


def places_of(counts: Mapping[str, int]) -> list[TopicPartition]:
    """Return every partition of the topics."""
    return [(topic, partition) for topic, count in counts.items() for partition in range(count)]


def matching(patterns: str) -> Callable[[str], bool]:
    """Return whether a name matches one of some patterns, separated by commas; raises ValueError."""
    compiled = compile_patterns([patterns])
    return lambda name: any(one.fullmatch(name) for one in compiled)

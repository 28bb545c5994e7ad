"""The target state of a flow: Connect's own record in the configs topic (`KafkaConfigBackingStore`, Kafka 4.3).

The key is `target-state-<connector>`, the value JSON without a schema: `state` is for all workers, `state.v2`
(KIP-875) can also be STOPPED and takes precedence. A running MirrorMaker 2 reads what is written here and vice
versa. The topic has one partition, so the last record of the key is the state. Without a record it is STARTED; of two
flows that take turns, the one to the active cluster is STOPPED then.

What an operation writes also has its number and term, which Connect ignores. A process that was suspended may write
for an operation after a later one has: readers ignore such a record, so the log decides, not the time of the write.
"""

from __future__ import annotations

import json
from contextlib import closing
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from mirrorless.clusters.admin import Admin
from mirrorless.clusters.internal_topics import InternalTopic, ensure, internal_topic
from mirrorless.clusters.producer import TopicProducer
from mirrorless.clusters.replay import Replay
from mirrorless.errors import ClusterError, ClusterUnavailable, ConfigurationError
from mirrorless.modes import Modes

if TYPE_CHECKING:
    from mirrorless.settings import Flow

_PREFIX: Final = "target-state-"
_FLUSH_S: Final = 15.0


class TargetState(StrEnum):
    """The desired state of a flow; STOPPED is Connect's, and treated like PAUSED."""

    STARTED = "STARTED"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"


def key(connector: str) -> bytes:
    """Key of a connector's target state."""
    return (_PREFIX + connector).encode()


class OperationWriter(NamedTuple):
    """Which operation writes a state, and in which term of it: a lower one is late."""

    number: int
    term: int


_NOBODY: Final = OperationWriter(0, 0)
"""Before the first operation."""
_BY: Final = "mirrorless.by"


def value(state: TargetState, by: OperationWriter | None = None) -> bytes:
    """Value of a target state, as Connect's JsonConverter writes it (`serializeTargetState`)."""
    old = TargetState.PAUSED if state is TargetState.STOPPED else state
    said: dict[str, object] = {"state": old, "state.v2": state}
    if by is not None:
        said[_BY] = [*by]
    return json.dumps(said, separators=(",", ":")).encode()


def written_by(content: bytes | None) -> OperationWriter | None:
    """Return the operation that wrote a value, or had written the one before it; None for Connect."""
    try:
        number, term = json.loads(content or b"")[_BY]
        return OperationWriter(int(number), int(term))
    except (ValueError, TypeError, KeyError):
        return None


def parse(content: bytes | None) -> TargetState | None:
    """Read a value; a tombstone is STARTED, None is one that Connect would ignore (`processTargetStateRecord`)."""
    if content is None:
        return TargetState.STARTED
    try:
        fields = json.loads(content)
        if fields is None:
            return TargetState.STARTED
        said = fields.get("state.v2")
        return TargetState(said if isinstance(said, str) else fields.get("state"))
    except (ValueError, TypeError, AttributeError):
        return None


def configs_topic(flow: Flow) -> InternalTopic:
    """Return the topic of Connect's configs, on the target; always with dots, as the worker names it."""
    name = f"mm2-configs.{flow.worker_alias}.internal"
    return internal_topic(flow, flow.target, name, factor_key="offset.storage.replication.factor")


class TargetStates:
    """The target state of one flow; kept open, it reads only what is new. `admin` is the target's client."""

    def __init__(self, flow: Flow, *, admin: Admin | None = None) -> None:
        self._topic = configs_topic(flow)
        self._key = key(flow.connector_name)
        self._admin = admin or Admin(flow.target)
        self._paused_by_file = flow.paused_by_file
        modes = Modes(flow)
        self._other_turn = modes.other_turn
        self._state = self._initial = TargetState.STOPPED if modes.begins_stopped else TargetState.STARTED
        self._by = _NOBODY
        self._replay = Replay(topic=self._topic.name, cluster=flow.target, admin=self._admin)

    def read(self) -> TargetState:
        """Return the state as it is now; raises `ClusterUnavailable`."""
        for entry in self._replay.read(self._forget):
            if entry.key == self._key and (state := parse(entry.value)) is not None:
                by = written_by(entry.value)
                if by is None or by >= self._by:
                    self._state, self._by = state, by or self._by
        if self._other_turn is not None and self._replay.refused is not None:
            # Without it both of two flows that take turns might copy.
            raise ClusterUnavailable(self._replay.refused, cluster=self._topic.cluster.alias)
        if self._paused_by_file and self._state is TargetState.STARTED:
            return TargetState.PAUSED
        return self._state

    @property
    def writer(self) -> OperationWriter:
        """The last operation that wrote a state, as read last."""
        return self._by

    def write(self, state: TargetState, *, by: OperationWriter | None = None) -> None:
        """Set the state and wait for the acknowledgement; creates the topic if it is missing. Raises `ClusterError`.

        `by` is the operation that does; one that is late changes nothing, and the state before is written again, since
        compaction keeps only the last record.
        """
        topic = self._topic
        if (reason := ensure(self._admin, topic)) is not None:
            raise ClusterError(f"cannot create topic {topic.name}: {reason}", cluster=topic.cluster.alias)
        producer = TopicProducer(topic.cluster, creator="the next call", gives_up_after_s=_FLUSH_S)
        producer.send(topic.name, key=self._key, value=value(state, by), partition=0)
        producer.confirm(topic.name, _FLUSH_S + 1)
        if by is None:
            return
        self.read()
        if by < self._by:
            producer.send(topic.name, key=self._key, value=value(self._state, self._by), partition=0)
            producer.confirm(topic.name, _FLUSH_S + 1)

    def close(self) -> None:
        """Close the connection."""
        self._replay.close()

    def _forget(self) -> None:
        self._state, self._by = self._initial, _NOBODY


def set_target_state(flow: Flow, state: TargetState) -> TargetState:
    """Pause a flow, or let it run, for an operator; returns its state then. Raises `ClusterError`.

    A flow that waits for its turn stays STOPPED: with the opposite one it would be a loop. So it does if an operation
    stops it before this is written. Raises `ConfigurationError` if the file pauses a flow that is to run.
    """
    if flow.paused_by_file and state is TargetState.STARTED:
        reason = "the file pauses this flow; remove mirrorless.paused, or the state of Strimzi's connector"
        raise ConfigurationError(reason, key=f"{flow.name}.mirrorless.paused", value="true")
    with closing(TargetStates(flow)) as states:
        if states._other_turn is not None and states.read() is TargetState.STOPPED:
            return TargetState.STOPPED
        states.write(state, by=states.writer)
        return states.read()


def waits_for_its_turn(flow: Flow, admin: Admin) -> str | None:
    """Return why nothing of a flow is synced now, None if it is: applications write to its target.

    `admin` is the target's client. Raises `ClusterUnavailable`.
    """
    with closing(TargetStates(flow, admin=admin)) as states:
        if states._other_turn is None or states.read() is not TargetState.STOPPED:
            return None
    return f"{flow.name} is stopped: applications write to {flow.target.alias}, from which the opposite flow copies"


def not_started(flow: Flow, admin: Admin) -> str | None:
    """Return why a flow may not be running, None if it is: it was paused or stopped, or its state is hidden.

    `admin` is the target's client. Raises `ClusterUnavailable`.
    """
    with closing(TargetStates(flow, admin=admin)) as states:
        state = states.read()
        if states._replay.refused is not None:
            return states._replay.refused
    return None if state is TargetState.STARTED else f"{flow.name} is {state.lower()}"


def states_in_turns(flow: Flow) -> dict[str, TargetState]:
    """Return the states of a flow and of the one that takes turns with it, by name; empty if it takes no turns.

    Raises `ClusterUnavailable`.
    """
    other = Modes(flow).other_turn
    found: dict[str, TargetState] = {}
    for one in () if other is None else (flow, other):
        with closing(TargetStates(one)) as states:
            found[one.name] = states.read()
    return found

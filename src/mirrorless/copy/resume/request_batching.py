"""Combines requests that many partitions make in the same turn of the event loop."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from mirrorless.kafka_python.structs import Future
from mirrorless.protocol.leaders import NotNow

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Hashable, Mapping, Sequence

    from mirrorless.kafka_python.event_loop import EventLoop

Group = TypeVar("Group", bound="Hashable")
Question = TypeVar("Question", bound="Hashable")
Answer = TypeVar("Answer")


class RequestBatcher(Generic[Group, Question, Answer]):
    """Gathers the questions of a group (say, a broker) and passes them to `ask`, which answers all of them.

    A request costs either side some tenths of a millisecond: thousands of partitions that begin at once would spend
    seconds with it. An answer that is an exception is raised to its caller; what `ask` raises, to all callers. Without
    an answer the caller gets `NotNow`.
    """

    def __init__(
        self,
        net: EventLoop,
        ask: Callable[[Group, Sequence[Question]], Coroutine[Any, Any, Mapping[Question, Answer | Exception]]],
    ) -> None:
        self._net = net
        self._ask = ask
        self._waiting: dict[Group, dict[Question, Any]] = defaultdict(dict)

    async def one(self, group: Group, question: Question) -> Answer:
        """Ask one question; `ask` gets it together with those of all other coroutines that are ready."""
        waiting = self._waiting[group]
        if not waiting:
            self._net.call_soon(self._flush(group))
        if question not in waiting:
            waiting[question] = Future()
        found: Answer = await waiting[question]
        return found

    async def _flush(self, group: Group) -> None:
        asked = self._waiting.pop(group)
        try:
            answers = await self._ask(group, list(asked))
        except Exception as error:  # noqa: BLE001 -- raised to the callers
            answers = dict.fromkeys(asked, error)
        for question, future in asked.items():
            # Without any answer the partition would wait for ever.
            answer = answers.get(question, NotNow("a broker's answer leaves out some of what it was asked"))
            if isinstance(answer, Exception):
                future.failure(answer)
            else:
                future.success(answer)

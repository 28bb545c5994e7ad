"""What is asked in one turn of the loop is asked as one, and everybody hears the answer that is theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mirrorless.copy.resume.compare_and_append import RequestBatcher
from mirrorless.protocol.leaders import NotNow

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Asked:
    """Doubles what it is asked, but leaves out 0; odd numbers have an error of their own, groups below 0 fail whole."""

    def __init__(self, loop: Any) -> None:  # noqa: ANN401 -- the library is untyped
        self._loop = loop
        self.calls: list[tuple[int, list[int]]] = []
        self.together: RequestBatcher[int, int, int] = RequestBatcher(loop, self._ask)

    async def _ask(self, group: int, numbers: Sequence[int]) -> Mapping[int, int | Exception]:
        self.calls.append((group, list(numbers)))
        await self._loop.sleep(0.01)
        if group < 0:
            raise ConnectionError(group)
        return {number: ValueError(number) if number % 2 else 2 * number for number in numbers if number}

    def run(self, *questions: tuple[int, int]) -> list[int | Exception]:
        """Ask all of them in one turn."""

        async def all_of_them() -> list[int | Exception]:
            asked = [self._loop.call_soon_with_future(self.together.one(*question)) for question in questions]
            found: list[int | Exception] = []
            for one in asked:
                try:
                    found.append(await one)
                except (ValueError, ConnectionError, NotNow) as error:
                    found.append(error)
            return found

        answers: list[int | Exception] = self._loop.run(all_of_them)
        return answers


def test_a_group_is_asked_once_in_a_turn(loop: Any) -> None:  # noqa: ANN401
    asked = Asked(loop)
    assert asked.run((1, 2), (2, 4), (1, 6), (1, 2)) == [4, 8, 12, 4]
    assert asked.calls == [(1, [2, 6]), (2, [4])]
    assert asked.run((1, 2)) == [4]
    assert asked.calls[2:] == [(1, [2])], "an answer is not kept"


def test_an_error_reaches_those_whom_it_is_for(loop: Any) -> None:  # noqa: ANN401
    asked = Asked(loop)
    first, second, third, fourth = asked.run((1, 2), (1, 3), (-1, 2), (-1, 4))
    assert first == 4
    assert repr(second) == repr(ValueError(3))
    assert repr(third) == repr(fourth) == repr(ConnectionError(-1))


def test_what_is_asked_while_an_answer_is_under_way_is_asked_for_itself(loop: Any) -> None:  # noqa: ANN401
    asked = Asked(loop)

    async def twice() -> list[int]:
        early = loop.call_soon_with_future(asked.together.one(1, 2))
        await loop.sleep(0.002)
        late = loop.call_soon_with_future(asked.together.one(1, 4))
        return [await late, await early]

    assert loop.run(twice) == [8, 4]
    assert asked.calls == [(1, [2]), (1, [4])]


def test_whoever_is_left_out_hears_of_it(loop: Any) -> None:  # noqa: ANN401
    left_out, answered = Asked(loop).run((1, 0), (1, 2))
    assert isinstance(left_out, NotNow)
    assert answered == 4

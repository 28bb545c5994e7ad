"""What a function keeps warm is made anew when its settings changed, and after an error."""

from __future__ import annotations

from itertools import count

import pytest

from mirrorless.errors import ClusterUnavailable
from mirrorless.functions.client_cache import ClientCache


class Kept:
    """A Warm of numbered values, and which were closed."""

    def __init__(self) -> None:
        self.closed: list[int] = []
        self.warm: ClientCache[int] = ClientCache(self.closed.append)
        self._numbers = count(1)

    def use(self, name: str = "a->b", settings: object = "settings", *, fails: bool = False) -> int:
        with self.warm.kept(name, settings, self._numbers.__next__) as value:
            if fails:
                raise ClusterUnavailable("the login was refused", cluster="b")
            return value


def test_a_value_is_kept_by_flow() -> None:
    kept = Kept()
    assert [kept.use(), kept.use(), kept.use("b->a"), kept.use()] == [1, 1, 2, 1]
    assert kept.closed == []


def test_other_settings_are_another_value() -> None:
    kept = Kept()
    assert [kept.use(), kept.use(settings="others"), kept.use(settings="others")] == [1, 2, 2]
    assert kept.closed == [1]


def test_after_an_error_it_is_made_anew_although_the_settings_are_the_same() -> None:
    kept = Kept()
    kept.use()
    kept.use("b->a")
    with pytest.raises(ClusterUnavailable):
        kept.use(fails=True)
    assert kept.closed == [1]
    assert [kept.use(), kept.use("b->a")] == [3, 2]


def test_what_cannot_be_made_is_not_kept() -> None:
    warm: ClientCache[int] = ClientCache()

    def refused() -> int:
        raise ClusterUnavailable("the login was refused", cluster="b")

    with pytest.raises(ClusterUnavailable), warm.kept("a->b", 0, refused):
        pass
    with warm.kept("a->b", 0, lambda: 7) as value:
        assert value == 7


def test_nothing_is_closed_twice() -> None:
    kept = Kept()
    kept.use()
    kept.warm.forget("a->b")
    kept.warm.forget("a->b")
    assert kept.closed == [1]

"""Each planted fault is found by the seed that found it first; `make simulate-planted` searches again."""

from __future__ import annotations

import pytest

from tests.simulation.planting import names, search, seeds


def test_every_fault_has_a_seed() -> None:
    assert names() == sorted(seeds())


@pytest.mark.parametrize("name", seeds())
def test_a_planted_fault_is_found(name: str) -> None:
    seed = seeds()[name]
    found = search(name, first=seed, schedules=1)
    assert found is not None
    assert found[0] == seed

"""Topics that are written on both sides, between releases: copies are skipped, counted and translated alike."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from mirrorless.clusters.admin import Admin
from mirrorless.offsets.translation import Translated
from mirrorless.offsets.turn_translation import translator_of
from mirrorless.settings import load
from tests.support.both_ways import BothWays, numbered, progress_records, write_progress_records
from tests.support.releases import CURRENT
from tests.support.world import World, fill

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.releases import Releases


@pytest.mark.parametrize(
    ("here", "there"), [("2.8.2", CURRENT), (CURRENT, "2.8.2"), ("3.6.2", CURRENT), (CURRENT, "3.6.2")]
)
def test_both_sides_have_all_records_once(releases: Releases, tmp_path: Path, here: str, there: str) -> None:
    both = BothWays(World(releases[here], releases[there], tmp_path))
    source, target = both.there.source, both.there.target
    for number in range(3):
        fill(source, both.topic, numbered("a", 20 * number, 20 * number + 20))
        fill(target, both.topic, numbered("b", 10 * number, 10 * number + 10))
        old = progress_records(both.there) if number else []
        both.copy()
    write_progress_records(both.there, old)  # older than the target, which has records of both sides after it
    fill(source, both.topic, numbered("a", 60, 70))
    both.copy()

    both.check(numbered("a", 0, 70), numbered("b", 0, 30))
    flow = load(str(both.there.file)).flows[0]
    place = both.topic, 0
    with closing(translator_of(flow, source=Admin(flow.source), target=Admin(flow.target))) as translator:
        translator.refresh([place])
        answer = translator.translate({place: [100]}, deadline=time.monotonic() + 60)[place][100]
    assert isinstance(answer, Translated)
    assert (answer.downstream, answer.exact) == (100, True)

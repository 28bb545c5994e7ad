"""Group offsets on the target are those on the source, up to the end of the target's log."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING

from mirrorless.clusters.admin import Admin
from mirrorless.offsets.checkpoint_pass import Checkpoints
from mirrorless.offsets.inverse_translation import InverseTranslator
from tests.kafka.identical.test_identical_copy import identical, transactions
from tests.support.identical import delete_before, ends
from tests.support.offsets import commit, committed
from tests.support.world import World, fill

if TYPE_CHECKING:
    from mirrorless.offsets.translation_service import Answers


def test_offsets_are_committed_unchanged(world: World) -> None:
    topic = identical(world)
    world.write_settings(**{"sync.group.offsets.enabled": "true"})
    fill(world.source, topic, [b"%d" % number for number in range(3_000)])
    delete_before(world.source, topic, 2_500)
    transactions(world, topic, rounds=20)
    world.copy()
    end = ends(world.source, topic)[1]
    fill(world.source, topic, [b"later"] * 5)  # not copied
    wanted = {
        "old": 1_000,
        "first": 2_500,
        "middle": 3_017,
        "hole": 3_101,
        "last": end - 3,
        "end": end,
        "beyond": end + 4,
    }
    for group, offset in wanted.items():
        commit(world.source, f"{group}-{topic}", {(topic, 0): offset})
    with closing(Checkpoints(world.place().load())) as checkpoints:
        report = checkpoints.emit()
        assert (report.troubles, report.walked_records) == ([], 0)
        checkpoints.sync_groups()
    found = {group: committed(world.target, f"{group}-{topic}") for group in wanted}
    remote = world.remote(topic), 0
    bounded = {group: {remote: min(max(offset, 2_500), end)} for group, offset in wanted.items()}
    assert found == bounded
    assert translated_back(world, topic, [2_600, 3_101, end]) == {2_600: 2_600, 3_101: 3_101, end: end}


def translated_back(world: World, topic: str, offsets: list[int]) -> dict[int, int]:
    flow = world.place().load()

    with closing(InverseTranslator(flow, source=Admin(flow.source), target=Admin(flow.target))) as inverse:
        assert inverse.refresh([(topic, 0)])
        answers: Answers = inverse.translate({(topic, 0): offsets}, deadline=time.monotonic() + 20)
    return {offset: one.downstream for offset, one in answers[topic, 0].items()}  # type: ignore[union-attr]

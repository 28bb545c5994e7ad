"""`doctor --probe` tries identical offsets on a topic of its own, and leaves nothing there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from click.testing import CliRunner

from mirrorless.cli.doctor import doctor
from mirrorless.clusters.admin import Admin
from mirrorless.doctor.findings import Status
from mirrorless.doctor.identical_probe import probe_identical_offsets
from tests.kafka.identical.test_identical_copy import identical

if TYPE_CHECKING:
    from tests.support.world import World


def test_a_topic_of_its_own_is_tried_and_deleted(world: World) -> None:
    world.topic()
    flow = world.place().load()
    assert probe_identical_offsets(flow) is None
    identical(world)
    found = probe_identical_offsets(world.place().load())
    assert found is not None
    assert (found.status, found.text) == (
        Status.OK,
        "a topic began at offset 100, and 3 markers took as many offsets",
    )
    shown = CliRunner().invoke(doctor, [str(world.file), "--probe"])
    assert "identical offsets: a topic began at offset 100" in shown.output
    assert not [topic for topic in Admin(flow.target).metadata().topics if "probe" in topic]

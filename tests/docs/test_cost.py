"""docs/cost.md has the tables that bench/cost.py prints, and the formula is as documented."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bench import cost
from tests.support.template import ROOT, environment

if TYPE_CHECKING:
    from _pytest.capture import CaptureFixture


def test_the_page_has_the_tables_as_they_are_printed(capsys: CaptureFixture[str]) -> None:
    cost.main()
    page = (ROOT / "docs" / "cost.md").read_text()
    for table in capsys.readouterr().out.strip().split("\n\n"):
        assert table in page


def test_memory_is_the_templates() -> None:
    flow = environment().nested["Forward"]
    in_template = {
        one["CodeUri"].rpartition("/")[2]: one.get("MemorySize", flow.globals["MemorySize"])
        for one in flow.of_type("AWS::Serverless::Function").values()
    }
    assert {one.name.split(",")[0]: one.memory_mb for one in cost.FUNCTIONS} == in_template


def test_a_job_has_cores_for_its_slots_network_for_its_bytes_and_a_driver() -> None:
    small = cost.job(1, slot_mb_s=20)
    assert (small.worker.name, small.number) == ("G.025X", 2)
    assert small.dollars == pytest.approx(2 * 0.25 * 730 * 0.44)
    slots = cost.job(500, slot_mb_s=20)  # 25 slots, 4 a worker
    assert (slots.worker.name, slots.number) == ("G.1X", 8)
    network = cost.job(500, slot_mb_s=200)  # 3 slots, but 150 MB/s a worker
    assert (network.worker.name, network.number) == ("G.1X", 5)


def test_what_is_not_sent_is_not_paid() -> None:
    flow = cost.watching(topics=0)
    assert cost.watching(topics=1, lagging_h=24) - flow == pytest.approx(6 * 0.30)
    assert cost.watching(topics=1, lagging_h=1) - flow == pytest.approx(6 * 0.30 / 24)
    assert flow == pytest.approx(19 * 0.30 + 3 * 0.30 / 24 + 19 * 0.10 + 0.50 + 3.0 + 730 * 30 * 0.01e-3 + 2 * 0.50)


def test_two_of_three_leaders_are_in_another_zone() -> None:
    assert cost.between_zones(1) == pytest.approx(2628 * 0.02 * 2 / 3)


def test_a_night_compares_a_day_of_both_sides() -> None:
    assert cost.verification(1) == pytest.approx(2628 * 2 / 576 * 0.88)


def test_others_are_reckoned_by_their_price_lists() -> None:
    assert cost.gigabytes(1) == pytest.approx(2628)
    assert cost.replicator(1) == pytest.approx(730 * 0.30 + 2628 * 0.08)
    assert cost.connect(1) == pytest.approx(730 * 0.11)


def test_a_function_costs_its_requests_and_its_time_in_memory() -> None:
    one = cost.Function("f", 512, an_hour=1, seconds=2)
    assert one.dollars == pytest.approx(730 * 0.20e-6 + 730 * 2 * 0.5 * 0.0000133334)

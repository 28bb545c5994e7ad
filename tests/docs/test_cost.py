"""docs/cost.md has the tables that bench/cost.py prints, and the formula is as documented."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from bench import cost
from mirrorless.doctor.aws import comparison
from mirrorless.doctor.aws.deployment import VerifyParameters
from mirrorless.functions.engine_decision import CARRIED
from tests.support.template import ROOT, environment, read

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
    reckoned = (*cost.FUNCTIONS, cost.COPY_AT_REST)
    assert {one.name.split(",")[0]: one.memory_mb for one in reckoned} == in_template


def test_functions_that_copy_are_as_many_as_the_template_takes() -> None:
    for template in ("template.yaml", "flow.yaml", "pipeline.yaml"):
        declared = read(ROOT / "infra" / template)["Parameters"]
        numbers = {name: one for name, one in declared.items() if name.endswith("CopyFunctions")}
        assert numbers
        assert all((one["MinValue"], one["MaxValue"]) == (1, cost.MOST_FUNCTIONS) for one in numbers.values())


def test_a_flow_is_cheaper_than_its_goal() -> None:
    for mb_s, goal in cost.GOALS.items():
        assert cost.automatic(mb_s) < goal
    assert set(cost.GOALS) == set(cost.RATES)


def test_functions_that_copy_always_run_and_overlap_when_they_hand_over() -> None:
    one = cost.Copies(3, 512)
    requests = 3 * 730 * 60
    assert one.dollars == pytest.approx(requests * 0.20e-6 + requests * (60 + cost.OVERLAP_S) * 0.5 * 0.0000133334)


def test_memory_and_number_are_chosen_by_rate_with_reserve(monkeypatch: pytest.MonkeyPatch) -> None:
    # A function is loaded to 80 %, and the largest of several shares has 1.25 times the mean.
    assert cost.copies(1.6) == cost.Copies(1, 256)
    assert cost.copies(1.7) == cost.Copies(1, 512)
    assert cost.copies(8) == cost.Copies(1, 512)
    assert cost.copies(50) == cost.Copies(4, 1024)
    found = cost.copies(200)
    assert found is not None
    assert (found.memory_mb, found.number) == (1024, 16)
    assert found.number * 20 * 0.8 >= 200 * 1.25
    assert cost.copies(500) is None  # the job: more functions than the template takes
    assert cost.by_functions(500) == math.inf
    monkeypatch.setattr(cost, "COPY_PEAK_MB", 300)
    assert cost.copies(1) == cost.Copies(1, 512)


def test_the_page_of_deployment_has_the_sizes_and_the_supervisor_the_same_reserve() -> None:
    page = (ROOT / "docs" / "deployment.md").read_text()
    assert cost.sizes() in page
    assert "20 MB/s per" not in page
    assert cost.COPY_LOAD == CARRIED


def test_heartbeats_and_checkpoints_return_at_once_while_functions_copy() -> None:
    saved = cost.functions() - cost.functions_beside_copy()
    assert saved > 0.8 * sum(one.dollars for one in cost.FUNCTIONS if one.name.startswith(("heartbeat", "checkpoint,")))
    changed = {one.name for one in cost.FUNCTIONS if one.dollars_beside_copy != one.dollars}
    assert changed == {"heartbeat", "checkpoint, by schedule", "checkpoint, by trigger"}


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
    assert cost.watching(topics=1, lagging_h=24) - flow == pytest.approx(4 * 0.30)
    assert cost.watching(topics=1, lagging_h=1) - flow == pytest.approx(4 * 0.30 / 24)
    assert cost.watching(by_job=True) - cost.watching() == pytest.approx(0.30)
    # Issue 63: 12 dollars, with every alarm and 20 topics that lag an hour a day.
    assert cost.watching() < 12
    metrics = 12 * 0.30 + 3 * 0.30 / 24 + 5 * 0.30 / 168
    logs = sum(one.an_hour for one in (*cost.FUNCTIONS, cost.COPY_AT_REST)) * 730 * 1_500 / 1e9 * 0.50
    assert flow == pytest.approx(metrics + 29 * 0.10 + 0.50 + 3.0 + 730 * 30 * 0.01e-3 + logs)


def test_alarms_are_paid_by_their_metrics() -> None:
    watch = environment().nested["Forward"].nested["Watch"].of_type("AWS::CloudWatch::Alarm")
    metrics = [sum("MetricStat" in one for one in alarm.get("Metrics", ())) or 1 for alarm in watch.values()]
    assert sum(metrics) == cost.ALARM_METRICS


def test_two_of_three_leaders_are_in_another_zone() -> None:
    assert cost.between_zones(1) == pytest.approx(2628 * 0.02 * 2 / 3)


def test_a_night_compares_a_day_of_both_sides_and_a_comparison_by_hand_everything() -> None:
    night, whole = cost.nightly(1), cost.complete(1)
    assert night.dollars == pytest.approx(26 * 3.6 * 2 / 576 * 0.88)
    assert night.between_zones == pytest.approx(26 * 3.6 * 2 * 0.02 * 2 / 3)
    assert whole.dollars == pytest.approx(168 * 3.6 * 2 / 576 * 0.88)
    # What the nightly comparison of everything would cost a month: issue 63.
    assert (round(whole.dollars * cost.NIGHTS), round(whole.between_zones * cost.NIGHTS)) == (56, 491)
    assert cost.complete(6).hours > cost.VERIFY_LIMIT_H > cost.complete(5).hours


def test_the_comparison_is_the_templates_and_its_duration_the_doctors() -> None:
    flow = environment(VerifySchedule="cron(30 1 * * ? *)").nested["Forward"]
    job, (trigger,) = flow.of_type("AWS::Glue::Job")["VerifyCopy"], flow.of_type("AWS::Glue::Trigger").values()
    assert trigger["Actions"][0]["Arguments"] == {"--since": f"{cost.VERIFY_SINCE_H}h"}
    assert (job["Timeout"], job["WorkerType"], job["NumberOfWorkers"]) == (cost.VERIFY_LIMIT_H * 60, "G.1X", 2)
    assert comparison.LIMIT_H == cost.VERIFY_LIMIT_H
    assert comparison.hours(86_400e6, VerifyParameters()) == pytest.approx(cost.nightly(1).hours)


def test_others_are_reckoned_by_their_price_lists() -> None:
    assert cost.gigabytes(1) == pytest.approx(2628)
    assert cost.replicator(1) == pytest.approx(730 * 0.30 + 2628 * 0.08)
    assert cost.connect(1) == pytest.approx(730 * 0.11)


def test_a_function_costs_its_requests_and_its_time_in_memory() -> None:
    one = cost.Function("f", 512, an_hour=1, seconds=2)
    assert one.dollars == pytest.approx(730 * 0.20e-6 + 730 * 2 * 0.5 * 0.0000133334)

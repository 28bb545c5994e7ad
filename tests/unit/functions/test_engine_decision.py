"""Which engine copies a flow, as a timeline of looks."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from mirrorless.functions.engine_decision import Seen, choose
from mirrorless.progress.engine_choice import EngineChoice
from mirrorless.progress.run_marks import RunMark, Share, Work
from mirrorless.settings import Cluster, Flow

MB = 1_000_000
NOON_MS = 1_700_000_000_000
FLOW = Flow(source=Cluster(alias="A", bootstrap_servers="a:1"), target=Cluster(alias="B", bootstrap_servers="b:1"))
STEADY = "the backlog is small: Spark is not needed"
NO_RATE = Work(lag_records=1, lag_bytes=2_000 * MB, bytes_per_s=0.0)


def mark(engine: str, work: Work | None, *, number: int = 0, of: int = 1) -> RunMark:
    return RunMark(
        f"{engine} {number}",
        "topics",
        claim=number,
        renewed_ms=NOON_MS,
        valid_ms=15_000,
        engine="functions" if engine == "functions" else "spark",
        share=Share(number, of),
        work=work,
    )


def work(lag_mb: float, rate_mb: float) -> Work:
    return Work(lag_records=round(lag_mb * 1_000), lag_bytes=round(lag_mb * MB), bytes_per_s=rate_mb * MB)


@dataclass
class Supervisor:
    """Looks at the marks, and remembers its choice as the progress topic does."""

    flow: Flow = FLOW
    no_spark: str = ""
    shares: int = 1
    at_s: float = 0.0
    choice: EngineChoice | None = None
    reasons: list[str] = field(default_factory=list)

    def look(self, after_s: float, *marks: RunMark) -> str:
        self.at_s += after_s
        seen = Seen(marks=marks, no_spark=self.no_spark, shares=self.shares)
        chosen = choose(self.choice, seen, self.flow, now_ms=NOON_MS + round(self.at_s * 1000))
        self.choice = EngineChoice.parse(json.loads(chosen.to_json()))
        assert self.choice == replace(chosen, functions_bytes_per_s=round(chosen.functions_bytes_per_s))
        self.reasons.append(chosen.reason)
        return chosen.engine


def settings(**fields: Any) -> Flow:  # noqa: ANN401 -- the model's fields
    return FLOW.model_copy(update=fields)


def test_functions_begin() -> None:
    one = Supervisor()
    assert one.look(0) == "functions"
    assert one.reasons == [STEADY]


def test_where_the_copy_job_runs_it_continues() -> None:
    one = Supervisor()
    assert one.look(0, mark("spark", None)) == "spark"
    assert one.reasons == ["the copy job was running"]
    # The earliest mark is that of the run that copies; a function may wait for it.
    assert Supervisor().look(0, mark("spark", None), mark("functions", None)) == "spark"
    assert Supervisor().look(0, mark("functions", None), mark("spark", None)) == "functions"


@pytest.mark.parametrize(("rate_mb", "engine"), [(3.4, "functions"), (3.3, "spark")])
def test_a_backlog_of_more_than_ten_minutes_is_for_spark(rate_mb: float, engine: str) -> None:
    one = Supervisor()
    behind = mark("functions", work(2_000, rate_mb))
    assert one.look(0, behind) == "functions"
    # A rate counts when it was measured long enough.
    assert one.look(29, behind) == "functions"
    assert one.look(1, behind) == engine
    assert one.reasons[0] == "a backlog of 2,000,000 records, about 2.0 GB, is copied without Spark"
    if engine == "spark":
        assert one.reasons[-1] == "without Spark the backlog of about 2.0 GB would take 10 minutes"


def test_a_rate_that_is_not_known_starts_nothing() -> None:
    one = Supervisor()
    assert [one.look(60, mark("functions", NO_RATE)) for _ in range(4)] == ["functions"] * 4


def test_the_shares_of_a_flow_are_added_up() -> None:
    one = Supervisor()
    one.shares = 2
    shares = [mark("functions", work(1_000, 1.7), number=number, of=2) for number in range(2)]
    assert [one.look(30, *shares) for _ in range(3)] == ["functions"] * 3
    slow = [replace(share, work=work(1_000, 1.6)) for share in shares]
    assert one.look(30, *slow) == "spark"


def test_functions_that_catch_up_meanwhile_are_as_before() -> None:
    one = Supervisor()
    behind = mark("functions", work(2_000, 2))
    assert one.look(0, behind) == "functions"
    assert one.look(20, mark("functions", work(9, 2))) == "functions"
    assert one.reasons[-1] == STEADY
    assert one.look(20, behind) == "functions"
    assert one.look(30, behind) == "spark"


def test_a_lag_that_has_grown_for_five_minutes_is_for_spark() -> None:
    one = Supervisor()
    lags = [20, 30, 31, 40, 50, 60]
    assert [one.look(60, mark("functions", work(lag, 3))) for lag in lags] == [*["functions"] * 5, "spark"]
    assert one.reasons[-1] == "the lag has grown for 5 minutes"


def test_shorter_ups_and_downs_are_no_growth_and_no_end_of_it() -> None:
    looks_s = 15.0
    # Compared with that of a minute before, it grows each time.
    grows = [20 + minute * 10 + up for minute in range(6) for up in (0, -8, 9, -8)]
    one = Supervisor()
    engines = [one.look(looks_s, mark("functions", work(lag, 1))) for lag in grows]
    assert engines[:20] == ["functions"] * 20
    assert "spark" in engines[20:]
    # Now it does not, whatever it does between.
    swings = [10 + up for _ in range(10) for up in (0, 5, 9, 3)]
    one = Supervisor()
    assert {one.look(looks_s, mark("functions", work(lag, 1))) for lag in swings} == {"functions"}


def test_a_lag_that_shrinks_once_begins_to_grow_again() -> None:
    one = Supervisor()
    lags = [20, 30, 40, 50, 45, 50, 55, 60, 65]
    assert [one.look(60, mark("functions", work(lag, 3))) for lag in lags] == ["functions"] * len(lags)
    assert [one.look(60, mark("functions", work(lag, 3))) for lag in (70, 75)] == ["functions", "spark"]


def test_without_an_invocation_for_two_minutes_spark_copies() -> None:
    one = Supervisor()
    steady = mark("functions", work(0, 1))
    assert one.look(0, steady) == "functions"
    assert [one.look(60) for _ in range(2)] == ["functions"] * 2
    assert one.look(0, steady) == "functions"
    assert [one.look(60) for _ in range(3)] == [*["functions"] * 2, "spark"]
    assert one.reasons[-1] == "nothing copied for 2 minutes"


def test_a_share_that_is_missing_for_two_minutes_is_for_spark() -> None:
    one = Supervisor(shares=3)
    first, second, third = (mark("functions", work(0, 1), number=number, of=3) for number in range(3))
    # Two marks of one share are an invocation and its successor.
    assert [one.look(60, first, second, third, third) for _ in range(9)] == ["functions"] * 9
    assert one.look(60, first, third, third) == "functions"
    assert one.look(60, first, second, third) == "functions"
    assert [one.look(60, first, third) for _ in range(3)] == [*["functions"] * 2, "spark"]
    assert one.reasons[-1] == "1 of 3 functions did not run for 2 minutes"
    # Of another number of functions no share is one of these.
    other = Supervisor(shares=3)
    halves = [mark("functions", work(0, 1), number=number, of=2) for number in range(2)]
    assert [other.look(60, *halves) for _ in range(3)] == [*["functions"] * 2, "spark"]
    assert other.reasons[-1] == "3 of 3 functions did not run for 2 minutes"


def test_a_backlog_of_the_shares_that_run_counts_beside_one_that_is_missing() -> None:
    one = Supervisor(shares=2)
    behind = mark("functions", work(9_000, 5), of=2)
    assert [one.look(30, behind) for _ in range(2)] == ["functions", "spark"]
    assert one.reasons[-1] == "without Spark the backlog of about 9.0 GB would take 30 minutes"


def test_a_time_without_looks_is_none_without_invocations() -> None:
    """As while the flow was paused, or the target away: the functions begin with the supervisor."""
    one = Supervisor()
    assert one.look(0, mark("functions", work(0, 1))) == "functions"
    assert one.look(12 * 3600) == "functions"
    assert one.look(60) == "functions"
    assert one.look(600) == "functions"


def test_a_flow_of_functions_is_chosen_for_them_once() -> None:
    one = Supervisor(settings(engine="functions"))
    assert [one.look(60, mark("spark", work(5_000, 1))) for _ in range(2)] == ["functions"] * 2
    assert set(one.reasons) == {"mirrorless.engine is functions"}


def test_spark_that_was_chosen_and_cannot_be_started_is_given_up() -> None:
    one = spark_begins()
    one.no_spark = "Spark needs PySpark"
    assert one.look(60) == "functions"
    assert one.reasons[-1] == "Spark cannot be started: Spark needs PySpark"


def test_a_flow_whose_functions_never_ran_is_copied_by_spark_after_two_minutes() -> None:
    one = Supervisor()
    assert [one.look(60) for _ in range(3)] == [*["functions"] * 2, "spark"]


def test_an_idle_flow_has_no_invocations_for_a_while() -> None:
    one = Supervisor(settings(copy_idle_exit=True))
    assert [one.look(400, mark("functions", work(0, 0))), one.look(4_000)] == ["functions"] * 2


def spark_begins(flow: Flow = FLOW, *, functions_mb: float = 0.0) -> Supervisor:
    one = Supervisor(flow)
    assert one.look(0, mark("spark", None)) == "spark"
    assert one.choice is not None
    one.choice = replace(one.choice, functions_bytes_per_s=functions_mb * MB)
    return one


def test_spark_that_is_caught_up_for_fifteen_minutes_is_followed_by_functions() -> None:
    one = spark_begins()
    assert one.look(60, mark("spark", work(61, 2))) == "spark"
    caught_up = mark("spark", work(59, 2))
    assert [one.look(60, caught_up), one.look(899, caught_up)] == ["spark", "spark"]
    assert one.look(1, caught_up) == "functions"
    assert one.reasons[-1] == "caught up for 15 minutes"


def test_spark_that_falls_behind_again_is_not_caught_up() -> None:
    one = spark_begins()
    assert one.look(0, mark("spark", work(5, 2))) == "spark"
    assert one.look(800, mark("spark", work(500, 2))) == "spark"
    assert one.look(200, mark("spark", work(5, 2))) == "spark"
    assert [one.look(800, mark("spark", work(5, 2))), one.look(100, mark("spark", work(5, 2)))] == [
        "spark",
        "functions",
    ]


def test_spark_that_reports_nothing_continues() -> None:
    one = spark_begins()
    assert [one.look(2_000), one.look(2_000, mark("spark", None))] == ["spark"] * 2


@pytest.mark.parametrize(("rate_mb", "engine"), [(8.1, "spark"), (7.9, "functions")])
def test_a_rate_that_functions_cannot_carry_keeps_spark(rate_mb: float, engine: str) -> None:
    one = spark_begins(functions_mb=10)
    caught_up = mark("spark", work(1, rate_mb))
    assert [one.look(1, caught_up), one.look(900, caught_up)] == ["spark", engine]
    if engine == "spark":
        assert one.reasons[-1] == (
            "8.1 MB/s arrive, and without Spark 10.0 MB/s were copied (on AWS, a larger CopyFunctions raises that)"
        )


def test_more_functions_are_trusted_with_more() -> None:
    """As the reason says: raise CopyFunctions."""
    one = spark_begins(functions_mb=10)
    caught_up = mark("spark", work(1, 12))
    assert [one.look(1, caught_up), one.look(900, caught_up)] == ["spark", "spark"]
    one.shares = 2
    assert one.look(60, caught_up) == "functions"


def test_what_functions_copied_while_behind_is_remembered_by_the_choice_of_spark() -> None:
    one = Supervisor()
    assert [one.look(30, mark("functions", work(9_000, 5))) for _ in range(2)] == ["functions", "spark"]
    assert one.choice is not None
    assert one.choice.functions_bytes_per_s == 5 * MB
    caught_up = mark("spark", work(1, 4.5))
    assert [one.look(1, caught_up), one.look(900, caught_up)] == ["spark", "spark"]


def test_where_spark_cannot_be_started_functions_continue_and_say_so() -> None:
    one = Supervisor(no_spark="no Java")
    behind = mark("functions", work(9_000, 1))
    assert [one.look(60, behind) for _ in range(8)] == ["functions"] * 8
    assert one.reasons[-1] == (
        "without Spark the backlog of about 9.0 GB would take 150 minutes; Spark cannot be started: no Java"
    )
    assert one.choice is not None
    assert one.choice.since_ms == NOON_MS + 60_000
    # They were seen all the time: one look without them is no silence.
    one.no_spark = ""
    assert one.look(60) == "functions"


def test_the_times_are_those_of_the_configuration() -> None:
    flow = settings(spark_start_backlog_seconds=10.0, spark_stop_caught_up_seconds=5.0)
    one = Supervisor(flow)
    behind = mark("functions", work(100, 5))
    assert [one.look(9, behind), one.look(10, behind)] == ["functions", "spark"]
    caught_up = mark("spark", work(0, 1))
    assert [one.look(1, caught_up), one.look(5, caught_up)] == ["spark", "functions"]

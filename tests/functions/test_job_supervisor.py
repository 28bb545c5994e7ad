"""job_supervisor starts the copy job, restarts it, obeys pause and resume, and never starts two."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest

from mirrorless.clusters.target_state import TargetState, TargetStates
from mirrorless.progress.mark_reader import MarkReader
from tests.support.events import job_state, schedule
from tests.support.glue import lasting_runs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.functions.conftest import Aws, Start
    from tests.support.world import World


@pytest.fixture
def job(aws: Aws) -> Iterator[str]:
    name = f"job-{uuid.uuid4().hex}"
    aws.client("glue").create_job(
        Name=name,
        Role="arn:aws:iam::123456789012:role/glue",
        Command={"Name": "gluestreaming", "ScriptLocation": "s3://scripts/partition_copy.py"},
        ExecutionProperty={"MaxConcurrentRuns": 1},
    )
    with lasting_runs():
        yield name


@pytest.fixture
def world(world: World) -> World:
    """A flow that only the job copies."""
    world.write_settings(**{"mirrorless.engine": "spark"})
    return world


def runs(aws: Aws, job: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = aws.client("glue").get_job_runs(JobName=job)["JobRuns"]
    return found


def test_a_job_that_does_not_run_is_started_once(world: World, aws: Aws, job: str, start: Start) -> None:
    world.topic()
    function = start("job_supervisor", MIRRORLESS_JOB=job)
    first = function.invoke(schedule())
    assert first["state"] == "STARTED"
    assert first["running"] is True
    assert first["started_run"] == runs(aws, job)[0]["Id"]

    function.invoke(schedule())
    assert len(runs(aws, job)) == 1
    assert function.metrics() == {
        "job-running": [1, 1],
        "job-paused": [0, 0],
        "engine-functions": [0, 0],
        "job-starts": [1],  # no zeros of what is mostly zero, as is copy-missing
    }


def test_two_invocations_at_once_start_one_run(world: World, aws: Aws, job: str, start: Start) -> None:
    world.topic()
    functions = [start("job_supervisor", MIRRORLESS_JOB=job) for _ in range(3)]
    for function in functions:
        function.begin(schedule())
    answers = [function.end() for function in functions]
    assert [answer.error for answer in answers] == [None, None, None]
    assert all(answer.result["running"] for answer in answers)
    assert len(runs(aws, job)) == 1


def test_a_paused_flow_is_stopped_and_a_resumed_one_goes_on(world: World, aws: Aws, job: str, start: Start) -> None:
    world.topic()
    states = TargetStates(world.place().load())
    function = start("job_supervisor", MIRRORLESS_JOB=job)
    run = function.invoke(schedule())["started_run"]

    states.write(TargetState.PAUSED)
    paused = function.invoke(schedule())
    assert paused["stopped_runs"] == [run]
    assert paused["running"] is False
    assert function.invoke(schedule())["reason"] == "the flow is PAUSED"
    assert [one["JobRunState"] for one in runs(aws, job)] == ["STOPPING"]
    assert function.metrics()["job-running"] == [1]
    assert function.metrics()["job-paused"] == [0, 1, 1]

    states.write(TargetState.STARTED)
    assert function.invoke(schedule())["reason"] == "a run is being stopped; the next one starts after it"
    # Glue tells of the end of the run before its list does.
    resumed = function.invoke(job_state(job, run, "STOPPED"))
    assert resumed["started_run"] != run
    assert resumed["running"] is True


def test_a_deployment_restarts_the_run_with_its_release(world: World, aws: Aws, job: str, start: Start) -> None:
    world.topic()
    old = start("job_supervisor", MIRRORLESS_JOB=job, MIRRORLESS_RELEASE="r1")
    first = old.invoke(schedule())["started_run"]
    assert runs(aws, job)[0]["Arguments"] == {"--MIRRORLESS_RELEASE": "r1"}
    assert old.invoke(schedule())["stopped_runs"] == []

    new = start("job_supervisor", MIRRORLESS_JOB=job, MIRRORLESS_RELEASE="r2")
    assert new.invoke(schedule())["stopped_runs"] == [first]
    second = new.invoke(job_state(job, first, "STOPPED"))["started_run"]
    (latest,) = [one for one in runs(aws, job) if one["Id"] == second]
    assert latest["Arguments"] == {"--MIRRORLESS_RELEASE": "r2"}
    assert new.invoke(schedule())["stopped_runs"] == []


def test_the_run_of_a_flow_that_is_not_enabled_any_more_is_stopped(
    world: World, aws: Aws, job: str, start: Start
) -> None:
    world.topic()
    run = start("job_supervisor", MIRRORLESS_JOB=job).invoke(schedule())["started_run"]
    world.write_settings(**{f"{world.flow}.enabled": "false"})
    function = start("job_supervisor", MIRRORLESS_JOB=job)
    for _ in range(2):
        function.begin(schedule())
        error = function.end().error
        assert error is not None
        assert error["errorType"] == "FlowNotEnabled"
    assert [(one["Id"], one["JobRunState"]) for one in runs(aws, job)] == [(run, "STOPPING")]
    told = [line["stopped_runs"] for line in function.lines() if "stopped_runs" in line]
    assert told == [[run]]

    world.write_settings(**{f"{world.flow}.enabled": "true"})
    assert function.invoke(schedule())["reason"] == "a run is being stopped; the next one starts after it"


def test_another_jobs_event_is_none_of_its_business(world: World, aws: Aws, job: str, start: Start) -> None:
    world.topic()
    function = start("job_supervisor", MIRRORLESS_JOB=job)
    assert function.invoke(job_state("other", "jr_1", "FAILED"))["note"] == "other is another job"
    assert runs(aws, job) == []


def test_a_job_that_is_not_there_is_one_line(world: World, start: Start) -> None:
    world.topic()
    function = start("job_supervisor", MIRRORLESS_JOB="none")
    function.begin(schedule())
    error = function.end().error
    assert error is not None
    assert error["errorType"] == "AwsError"
    assert error["errorMessage"].startswith("job none: glue answered EntityNotFoundException: ")


def test_without_a_job_functions_copy_and_a_flow_of_spark_says_what_to_change(world: World, start: Start) -> None:
    world.topic()
    world.discover()
    world.write_settings(**{"mirrorless.engine": "functions"})
    answer = start("job_supervisor").invoke(schedule())
    assert (answer["engine"], answer["running"]) == ("functions", False)
    # The file has changed since the deployment, which would refuse it.
    world.write_settings(**{"mirrorless.engine": "auto"})
    assert start("job_supervisor").invoke(schedule())["engine"] == "functions"
    world.write_settings(**{"mirrorless.engine": "spark"})
    function = start("job_supervisor")
    function.begin(schedule())
    error = function.end().error
    assert error is not None
    assert error["errorMessage"].startswith(
        "the deployment has no copy job (GlueJobs=false), and mirrorless.engine is spark: "
    )


def test_before_topic_discovery_has_made_the_progress_topic_functions_are_chosen(
    world: World, aws: Aws, job: str, start: Start
) -> None:
    world.topic()
    world.write_settings(**{"mirrorless.engine": "auto"})
    function = start("job_supervisor", MIRRORLESS_JOB=job, MIRRORLESS_COPY_FUNCTIONS="3")
    answer = function.invoke(schedule())
    assert (answer["engine"], answer["running"]) == ("functions", False)
    assert runs(aws, job) == []
    assert function.metrics()["engine-functions"] == [1]
    assert function.metrics()["copy-missing"] == [3]  # none runs
    world.discover()
    assert function.invoke(schedule())["engine"] == "functions"
    choice = MarkReader(world.place().load()).read().chosen(world.place().load(), world.place().deployment)
    assert choice is not None
    assert choice.engine == "functions"

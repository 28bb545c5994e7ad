"""Every schedule, trigger and job of the templates is run by `mirrorless run`, or is left out with a reason."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any, Final

import pytest

from mirrorless.clusters.internal_topics import offset_syncs_topic, replicated_heartbeats
from mirrorless.errors import PrerequisiteError
from mirrorless.functions.environment import CopyEnvironment, FunctionEnvironment, SupervisorEnvironment, parse
from mirrorless.local import wiring as reading
from mirrorless.local.cloudformation import deployment, read
from mirrorless.local.wiring import LEFT_OUT, StateChange, Wiring, seconds_of, wiring
from mirrorless.settings import load
from tests.support.template import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from mirrorless.settings import Flow


MODELS: Final[dict[str, type[FunctionEnvironment]]] = {
    "copy": CopyEnvironment,
    "job_supervisor": SupervisorEnvironment,
}


def wired(folder: Path, **extra: str) -> tuple[Flow, Wiring]:
    lines = {
        "clusters": "a, b",
        "a.bootstrap.servers": "a1:9092, a2:9092",
        "b.bootstrap.servers": "b1:9092",
        "a->b.enabled": "true",
        **extra,
    }
    file = folder / "mm2.properties"
    file.write_text("".join(f"{key} = {value}\n" for key, value in lines.items()))
    settings = load(str(file))
    (flow,) = settings.flows
    return flow, wiring(settings, flow)


def written() -> list[tuple[str, str]]:
    """Every resource, and every event of a function, that wakes something: name and type, as the YAML has them."""
    found: list[tuple[str, str]] = []
    for path in sorted((ROOT / "infra").glob("*.yaml")):
        for name, one in read(path)["Resources"].items():
            events: dict[str, Any] = one.get("Properties", {}).get("Events", {})
            found += [(name, event["Type"]) for event in events.values()]
            kind = one["Type"]
            if any(word in kind for word in ("EventSourceMapping", "Events::", "Scheduler", "Trigger", "Glue::Job")):
                found.append((name, kind))
    return found


def test_every_schedule_and_trigger_of_the_templates_is_run(tmp_path: Path) -> None:
    _, found = wired(tmp_path)
    sources = [(name, kind) for name, kind in written() if name not in LEFT_OUT]
    assert len(sources) == 8 + 2 + 1 + 1
    assert len(sources) == len(found.schedules) + len(found.triggers) + len(found.changes) + 1
    assert sorted(one.function for one in found.schedules) == sorted(found.functions)
    assert {name for name, _ in written()} >= set(LEFT_OUT)
    assert all(reason for reason in LEFT_OUT.values())


def test_every_handler_is_found_and_told_what_it_needs(tmp_path: Path) -> None:
    flow, found = wired(tmp_path)
    written = {path.parent.name for path in (ROOT / "functions").glob("*/app.py")}
    assert set(found.functions) == written - {"drill"}
    for name, one in found.functions.items():
        assert (one.folder / "app.py").exists()
        told = parse(MODELS.get(name, FunctionEnvironment), one.variables)
        assert (told.flow, told.config) == (flow.name, str(tmp_path / "mm2.properties"))
        assert told.failures is None
        assert 60 <= one.timeout_s <= 900


def test_a_drill_is_a_command_here_and_is_not_run_on_its_schedule(tmp_path: Path) -> None:
    _, found = wired(tmp_path)
    assert ("Drill", "Schedule") in written()
    assert LEFT_OUT["Drill"] == "`mirrorless drill` is a command"
    assert "drill" not in found.functions
    assert "drill" not in {one.function for one in found.schedules}


def test_the_job_is_the_script_that_glue_runs_without_its_cloudwatch(tmp_path: Path) -> None:
    flow, found = wired(tmp_path)
    assert found.job.script == ROOT / "glue_jobs" / "partition_copy.py"
    arguments = dict(zip(found.job.arguments[::2], found.job.arguments[1::2], strict=True))
    assert arguments["--MIRRORLESS_FLOW"] == flow.name
    # The region is the environment's, not the templates'.
    assert not {"--MIRRORLESS_METRICS", "--MIRRORLESS_REGION", "--MIRRORLESS_RELEASE"} & arguments.keys()
    assert found.changes == (
        StateChange(
            function="job_supervisor",
            job=found.job.name,
            states=frozenset({"SUCCEEDED", "FAILED", "TIMEOUT", "STOPPED", "EXPIRED", "ERROR"}),
        ),
    )


def test_rates_are_the_configurations_intervals(tmp_path: Path) -> None:
    _, found = wired(
        tmp_path,
        **{
            "refresh.topics.interval.seconds": "1",
            "sync.topic.configs.interval.seconds": "90",
            "sync.topic.acls.interval.seconds": "3600",
            "emit.checkpoints.interval.seconds": "2",
        },
    )
    assert {one.function: one.seconds for one in found.schedules} == {
        "topic_discovery": 1,
        "config_sync": 90,
        "acl_sync": 3600,
        "checkpoint": 2,
        "heartbeat": 60,
        "heartbeat_monitor": 60,
        "job_supervisor": reading.SUPERVISOR_S,
        "copy": reading.SUPERVISOR_S,
    }


@pytest.mark.parametrize("location", ["source", "target"])
@pytest.mark.parametrize("separator", [".", "-"])
def test_triggers_are_on_the_topics_and_clusters_that_are_written(
    location: str, separator: str, tmp_path: Path
) -> None:
    flow, found = wired(
        tmp_path,
        **{"offset-syncs.topic.location": location, "replication.policy.separator": separator},
    )
    syncs, beats = found.triggers
    topic = offset_syncs_topic(flow)
    assert (syncs.function, syncs.topics) == ("checkpoint", (topic.name,))
    assert syncs.bootstrap_servers == (("a1:9092", "a2:9092") if location == "source" else ("b1:9092",))
    assert (beats.function, beats.topics) == ("heartbeat_monitor", (replicated_heartbeats(flow),))
    assert beats.bootstrap_servers == ("b1:9092",)
    assert (beats.batch_size, beats.window_s) == (1000, 15.0)


@pytest.mark.parametrize(
    ("rate", "seconds"),
    [
        ("rate(1 second)", 1),
        ("rate(90 seconds)", 90),
        ("rate(1 minute)", 60),
        ("rate(2 hours)", 7200),
        ("rate(1 day)", 86400),
    ],
)
def test_a_rate_is_so_many_seconds(rate: str, seconds: int) -> None:
    assert seconds_of(rate) == seconds


@pytest.mark.parametrize(
    "rate", ["cron(0 1 * * ? *)", "rate(0 minutes)", "rate(1 week)", "at(2026-01-01T00:00:00)", ""]
)
def test_what_is_no_rate_is_an_error(rate: str) -> None:
    with pytest.raises(PrerequisiteError, match="is not supported on this machine"):
        seconds_of(rate)


@pytest.mark.parametrize(
    ("template_name", "known", "unknown"),
    [
        (
            "pipeline.yaml",
            "        Rate: {Type: Schedule, Properties: {Schedule: !GetAtt Settings.AclSyncRate}}\n",
            "        Rate: {Type: S3, Properties: {Bucket: !Ref Failures}}\n",
        ),
        (
            "pipeline.yaml",
            "        Rate: {Type: Schedule, Properties: {Schedule: !GetAtt Settings.AclSyncRate}}\n",
            "        Rate: {Type: Schedule, Properties: {Schedule: !GetAtt Settings.AclSyncRate, Input: '{}'}}\n",
        ),
        ("triggers.yaml", "[OffsetSyncsHasSince, AT_TIMESTAMP, LATEST]", "[OffsetSyncsHasSince, LATEST, AT_TIMESTAMP]"),
        (
            "pipeline.yaml",
            "  FunctionsLog:\n",
            "  Nightly: {Type: AWS::Scheduler::Schedule, Properties: {}}\n  FunctionsLog:\n",
        ),
    ],
)
def test_what_the_templates_have_and_the_wiring_does_not_know_is_an_error(
    template_name: str, known: str, unknown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("infra", "functions", "glue_jobs"):
        shutil.copytree(ROOT / name, tmp_path / name)
    template = tmp_path / "infra" / template_name
    text = template.read_text()
    assert known in text
    template.write_text(text.replace(known, unknown))
    monkeypatch.setattr(reading, "deployment", lambda: tmp_path)
    with pytest.raises(PrerequisiteError, match=rf"^{template_name}: .*by `mirrorless run`$"):
        wired(tmp_path)


def test_a_checkout_is_its_own_deployment() -> None:
    assert deployment() == ROOT

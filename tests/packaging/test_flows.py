"""An environment has a flow there and, if wanted, the way back; clusters may be on MSK or not."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import pytest

from mirrorless.clusters.internal_topics import offset_syncs_topic
from mirrorless.functions.environment import FunctionEnvironment, SupervisorEnvironment, parse
from mirrorless.settings import load
from mirrorless.settings.model import Flow
from tests.support.template import ROOT, cluster_arn, environment

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.template import Stack

TRIGGERS: Final = "AWS::Lambda::EventSourceMapping"
FUNCTIONS: Final = "AWS::Serverless::Function"


def variables(flow: Stack, name: str) -> dict[str, str]:
    """Return the environment of a function."""
    own = flow.of_type(FUNCTIONS)[name]["Environment"]["Variables"]
    return {**flow.globals["Environment"]["Variables"], **own}


def test_the_way_back_is_the_same_with_its_ends_exchanged() -> None:
    both = environment(BackwardEnabled="true", FirstTopics="orders*", SecondTopics="*")
    assert set(both.nested) == {"Forward", "Backward"}
    there, back = (both.nested[name].parameters for name in ("Forward", "Backward"))
    for name, value in there.items():
        other = name.replace("Source", "\0").replace("Target", "Source").replace("\0", "Target")
        if other != name:
            assert back[other] == value
    assert (there["Topics"], there["RemoteTopics"]) == ("orders*", "primary.orders*")
    assert (back["Topics"], back["RemoteTopics"]) == ("*", "backup.*")
    assert set(environment().nested) == {"Forward"}


def test_remote_topics_keep_their_names_under_the_identity_policy() -> None:
    assert environment(ReplicationPolicy="identity").nested["Forward"].parameters["RemoteTopics"] == "*"


def test_every_function_has_its_handler_and_its_environment() -> None:
    flow = environment().nested["Forward"]
    found = flow.of_type(FUNCTIONS)
    assert len(found) == 7
    for name, one in found.items():
        folder = (ROOT / "infra" / one["CodeUri"]).resolve()
        assert folder.parent == ROOT / "functions"
        assert folder.name.replace("_", "") == name.lower()
        assert flow.globals["Handler"] == "app.handler"
        assert "handler = " in (folder / "app.py").read_text()
        told = variables(flow, name)
        model = SupervisorEnvironment if name == "JobSupervisor" else FunctionEnvironment
        assert parse(model, told).flow == "primary->backup"
        assert told["POWERTOOLS_SERVICE_NAME"] == folder.name
        ours = {key for key in told if key.startswith("MIRRORLESS_")}
        assert ours <= {str(about.alias) for about in model.model_fields.values()}
    assert {path.parent.name for path in (ROOT / "functions").glob("*/app.py")} == {
        one["CodeUri"].rpartition("/")[2] for one in found.values()
    }


def test_only_functions_with_a_trigger_have_a_place_for_refused_records() -> None:
    flow = environment().nested["Forward"]
    triggered = {one["FunctionName"].strip("<>") for one in flow.of_type(TRIGGERS).values()}
    told = {name for name in flow.of_type(FUNCTIONS) if "MIRRORLESS_FAILURES" in variables(flow, name)}
    assert triggered == told == {"Checkpoint", "HeartbeatMonitor"}


def test_a_function_ends_before_lambda_ends_it_and_keeps_to_its_number() -> None:
    flow = environment().nested["Forward"]
    for one in flow.of_type(FUNCTIONS).values():
        timeout = one.get("Timeout", flow.globals["Timeout"])
        assert 60 <= timeout <= 900
        assert one["ReservedConcurrentExecutions"] in (1, 2)
        assert one["EventInvokeConfig"]["MaximumRetryAttempts"] == 0
        assert "DestinationConfig" not in one["EventInvokeConfig"]  # the next one does its work


@pytest.mark.parametrize("location", ["source", "target"])
def test_triggers_are_on_the_topics_that_the_copy_and_the_heartbeats_write(location: str, tmp_path: Path) -> None:
    flow = environment(OffsetSyncsLocation=location).nested["Forward"]
    settings = tmp_path / "mm2.properties"
    settings.write_text(
        "clusters=primary,backup\nprimary.bootstrap.servers=a:1\nbackup.bootstrap.servers=b:1\n"
        f"primary->backup.enabled=true\noffset-syncs.topic.location={location}\n"
    )
    syncs = offset_syncs_topic(load(str(settings)).flow("primary->backup"))
    trigger = flow.of_type(TRIGGERS)["OffsetSyncs"]
    assert trigger["Topics"] == [syncs.name]
    assert trigger["EventSourceArn"] == cluster_arn(syncs.cluster.alias)
    beats = flow.of_type(TRIGGERS)["Heartbeats"]
    assert beats["Topics"] == ["primary.heartbeats"]
    assert beats["EventSourceArn"] == cluster_arn("backup")
    assert all(one["DestinationConfig"]["OnFailure"]["Destination"] == "<Failures.Arn>" for one in (trigger, beats))


def test_a_cluster_off_msk_is_polled_from_the_subnets_with_its_secret() -> None:
    outside: dict[str, Any] = {
        "FirstClusterArn": "",
        "FirstBootstrapServers": "a:9094,b:9094",
        "FirstAuthentication": "SASL_SCRAM_512_AUTH",
        "FirstSecretArn": "arn:first",
        "FirstRootCaSecretArn": "arn:ca",
    }
    trigger = environment(**outside).nested["Forward"].of_type(TRIGGERS)["OffsetSyncs"]
    assert "EventSourceArn" not in trigger
    assert trigger["SelfManagedEventSource"] == {"Endpoints": {"KafkaBootstrapServers": ["a:9094", "b:9094"]}}
    assert trigger["SourceAccessConfigurations"] == [
        {"Type": "VPC_SUBNET", "URI": "subnet:subnet-1"},
        {"Type": "VPC_SUBNET", "URI": "subnet:subnet-2"},
        {"Type": "VPC_SECURITY_GROUP", "URI": "security_group:sg-1"},
        {"Type": "SASL_SCRAM_512_AUTH", "URI": "arn:first"},
        {"Type": "SERVER_ROOT_CA_CERTIFICATE", "URI": "arn:ca"},
    ]


def test_a_cluster_on_msk_needs_an_access_configuration_only_for_a_secret() -> None:
    plain = environment().nested["Forward"].of_type(TRIGGERS)["OffsetSyncs"]
    assert "SourceAccessConfigurations" not in plain
    assert "SelfManagedEventSource" not in plain
    scram = environment(FirstAuthentication="SASL_SCRAM_512_AUTH", FirstSecretArn="arn:first").nested["Forward"]
    trigger = scram.of_type(TRIGGERS)["OffsetSyncs"]
    assert trigger["SourceAccessConfigurations"] == [{"Type": "SASL_SCRAM_512_AUTH", "URI": "arn:first"}]


def test_the_job_runs_once_and_is_told_the_flow() -> None:
    flow = environment().nested["Forward"]
    job = flow.of_type("AWS::Glue::Job")["PartitionCopy"]
    assert job["GlueVersion"] == "6.0"
    assert job["Command"]["Name"] == "gluestreaming"
    assert (ROOT / "infra" / job["Command"]["ScriptLocation"]).resolve() == ROOT / "glue_jobs" / "partition_copy.py"
    assert job["ExecutionProperty"] == {"MaxConcurrentRuns": 1}
    arguments = job["DefaultArguments"]
    assert arguments["--MIRRORLESS_FLOW"] == variables(flow, "JobSupervisor")["MIRRORLESS_FLOW"]
    assert arguments["--MIRRORLESS_CONFIG"] == variables(flow, "JobSupervisor")["MIRRORLESS_CONFIG"]
    assert arguments["--MIRRORLESS_METRICS"] == "cloudwatch"
    assert arguments["--python-virtual-env"] == "<PythonEnvironment.Location>"
    logs = {one["LogGroupName"] for one in flow.of_type("AWS::Logs::LogGroup").values()}
    assert {f"{arguments['--custom-logGroup-prefix']}/{kind}" for kind in ("output", "error")} < logs


def test_the_comparison_runs_by_itself_once_at_a_time_with_the_jars_to_read_kafka() -> None:
    flow = environment().nested["Forward"]
    job = flow.of_type("AWS::Glue::Job")["VerifyCopy"]
    assert (job["GlueVersion"], job["Command"]["Name"]) == ("6.0", "glueetl")
    assert (ROOT / "infra" / job["Command"]["ScriptLocation"]).resolve() == ROOT / "glue_jobs" / "verify_copy.py"
    assert job["ExecutionProperty"] == {"MaxConcurrentRuns": 1}
    arguments, copy = job["DefaultArguments"], flow.of_type("AWS::Glue::Job")["PartitionCopy"]["DefaultArguments"]
    same = ("--MIRRORLESS_CONFIG", "--MIRRORLESS_FLOW", "--MIRRORLESS_METRICS", "--python-virtual-env")
    assert [arguments[name] for name in same] == [copy[name] for name in same]
    assert arguments["--extra-jars"] == "<KafkaJars.Location>"
    assert arguments["--report"] == "s3://<Artifacts>/verify"
    logs = {one["LogGroupName"] for one in flow.of_type("AWS::Logs::LogGroup").values()}
    assert {f"{arguments['--custom-logGroup-prefix']}/{kind}" for kind in ("output", "error")} < logs
    (trigger,) = flow.of_type("AWS::Glue::Trigger").values()
    assert (trigger["Type"], trigger["StartOnCreation"]) == ("SCHEDULED", True)
    assert trigger["Schedule"] == "cron(30 1 * * ? *)"
    assert trigger["Actions"] == [{"JobName": "<VerifyCopy>"}]
    assert not environment(VerifySchedule="").nested["Forward"].of_type("AWS::Glue::Trigger")


def test_the_jobs_own_arguments_are_those_of_its_script() -> None:
    for name, job in environment().nested["Forward"].of_type("AWS::Glue::Job").items():
        script = (ROOT / "infra" / job["Command"]["ScriptLocation"]).read_text()
        glues = {"--python-virtual-env", "--extra-jars", "--job-language", "--enable-auto-scaling"}
        own = set(job["DefaultArguments"]) - glues - {"--custom-logGroup-prefix"}
        assert own
        assert all(f'"{one}"' in script for one in own), name


def test_a_report_is_written_where_the_role_allows_it() -> None:
    flow = environment().nested["Forward"]
    role = flow.nested["Roles"].of_type("AWS::IAM::Role")["VerifyCopyRole"]
    (report,) = [one for one in role["Policies"][0]["PolicyDocument"]["Statement"] if one["Sid"] == "Report"]
    assert report["Resource"] == "<Artifacts.Arn>/verify/primary-backup/*"


def test_a_comparison_that_failed_is_a_message_in_the_queue_of_failures() -> None:
    flow = environment().nested["Forward"]
    rule = flow.of_type("AWS::Events::Rule")["VerifyFailed"]
    assert rule["EventPattern"]["detail"] == {"jobName": ["<VerifyCopy>"], "state": ["FAILED", "TIMEOUT"]}
    assert [one["Arn"] for one in rule["Targets"]] == ["<Failures.Arn>"]
    (policy,) = flow.of_type("AWS::SQS::QueuePolicy").values()
    (statement,) = policy["PolicyDocument"]["Statement"]
    assert (statement["Action"], statement["Resource"]) == ("sqs:SendMessage", "<Failures.Arn>")
    assert statement["Condition"] == {"ArnEquals": {"aws:SourceArn": "<VerifyFailed.Arn>"}}


def test_the_supervisor_hears_of_the_end_of_its_own_job() -> None:
    flow = environment().nested["Forward"]
    pattern = flow.of_type(FUNCTIONS)["JobSupervisor"]["Events"]["RunEnded"]["Properties"]["Pattern"]
    assert pattern["detail"]["jobName"] == ["<PartitionCopy>"] == [variables(flow, "JobSupervisor")["MIRRORLESS_JOB"]]


def test_every_log_group_has_its_end() -> None:
    both = environment(BackwardEnabled="true", LogRetentionDays=7)
    groups = [one for stack in (both, *both.nested.values()) for one in stack.of_type("AWS::Logs::LogGroup").values()]
    assert len({one["LogGroupName"] for one in groups}) == len(groups) == 11
    assert {one["RetentionInDays"] for one in groups} == {7}


def test_schedules_are_as_often_as_the_settings_have_it_by_default() -> None:
    flow = environment().nested["Forward"]
    found = {
        name: event["Properties"]["Schedule"]
        for name, one in flow.of_type(FUNCTIONS).items()
        for event in one["Events"].values()
        if event["Type"] == "Schedule"
    }
    usual = {name: about.default for name, about in Flow.model_fields.items()}
    assert {name: seconds(rate) for name, rate in found.items()} == {
        "TopicDiscovery": usual["refresh_topics_interval_seconds"],
        "ConfigSync": usual["sync_topic_configs_interval_seconds"],
        "AclSync": usual["sync_topic_acls_interval_seconds"],
        "Checkpoint": usual["emit_checkpoints_interval_seconds"],
        "Heartbeat": 60,
        "HeartbeatMonitor": 60,
        "JobSupervisor": 60,
    }


def seconds(rate: str) -> int:
    """Return how often a rate is; EventBridge wants `1 minute`, but `2 minutes`."""
    found = re.fullmatch(r"rate\((?:1 minute|(\d+) minutes)\)", rate)
    assert found is not None, rate
    return 60 * int(found[1] or 1)

"""An environment has a flow there and, if wanted, the way back; clusters may be on MSK or not."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final

import pytest

from mirrorless.clusters.internal_topics import offset_syncs_topic
from mirrorless.functions.environment import (
    CopyEnvironment,
    DrillEnvironment,
    FunctionEnvironment,
    SupervisorEnvironment,
    parse,
)
from mirrorless.functions.job_supervisor import OVER
from mirrorless.settings import load
from mirrorless.settings.model import Flow
from tests.packaging.test_aws_rights import statements
from tests.support.template import REGION, ROOT, cluster_arn, configuration, environment, read

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.template import Stack

TRIGGERS: Final = "AWS::Lambda::EventSourceMapping"
FUNCTIONS: Final = "AWS::Serverless::Function"
MODELS: Final[dict[str, type[FunctionEnvironment]]] = {
    "Copy": CopyEnvironment,
    "Drill": DrillEnvironment,
    "JobSupervisor": SupervisorEnvironment,
}


def variables(flow: Stack, name: str) -> dict[str, str]:
    """Return the environment of a function."""
    own = flow.of_type(FUNCTIONS)[name]["Environment"]["Variables"]
    return {**flow.globals["Environment"]["Variables"], **own}


def test_the_opposite_flow_is_the_same_with_its_ends_exchanged() -> None:
    both = environment(BackwardEnabled="true", FirstTopics="orders*", SecondTopics="*")
    assert set(both.nested) == {"Shared", "Forward", "Backward"}
    there, back = (both.nested[name] for name in ("Forward", "Backward"))
    for name, value in there.parameters.items():
        other = name.replace("Source", "\0").replace("Target", "Source").replace("\0", "Target")
        if other != name:
            assert back.parameters[other] == value
    assert (there.outputs["Flow"], back.outputs["Flow"]) == ("primary->backup", "backup->primary")
    roles = {name: stack.nested["Roles"].parameters for name, stack in both.nested.items() if name != "Shared"}
    assert (roles["Forward"]["Topics"], roles["Forward"]["RemoteTopics"]) == ("orders*", "primary.orders*")
    assert (roles["Backward"]["Topics"], roles["Backward"]["RemoteTopics"]) == ("*", "backup.*")
    assert set(environment().nested) == {"Shared", "Forward"}


def test_remote_topics_keep_their_names_under_the_identity_policy() -> None:
    identity = environment("replication.policy.class=org.apache.kafka.connect.mirror.IdentityReplicationPolicy\n")
    assert identity.nested["Forward"].nested["Roles"].parameters["RemoteTopics"] == "*"


def test_names_are_the_stacks_and_no_alias_is_part_of_them() -> None:
    """An alias may have a dot, which a log group's prefix may not, and two pairs may have the same aliases."""
    both = environment(BackwardEnabled="true")
    for name, flow in both.nested.items():
        written = [
            *(one["LogGroupName"] for one in flow.of_type("AWS::Logs::LogGroup").values()),
            *(one["Name"] for one in flow.of_type("AWS::Glue::Job").values()),
            *(one["Name"] for one in flow.of_type("AWS::SSM::Parameter").values()),
            *(one["ConnectionInput"]["Name"] for one in flow.of_type("AWS::Glue::Connection").values()),
        ]
        assert written
        assert all(one.removeprefix("/mirrorless/").startswith("stack") for one in written), name
        assert not any("primary" in one or "backup" in one for one in written)
    assert both.nested["Forward"].parameters["Name"] == "stack-forward"


def test_every_function_has_its_handler_and_its_environment() -> None:
    flow = environment().nested["Forward"]
    found = flow.of_type(FUNCTIONS)
    assert len(found) == 9
    for name, one in found.items():
        folder = (ROOT / "infra" / one["CodeUri"]).resolve()
        assert folder.parent == ROOT / "functions"
        assert folder.name.replace("_", "") == name.lower()
        assert flow.globals["Handler"] == "app.handler"
        assert "handler = " in (folder / "app.py").read_text()
        told = variables(flow, name)
        model = MODELS.get(name, FunctionEnvironment)
        assert parse(model, told).flow == "primary->backup"
        assert told["POWERTOOLS_SERVICE_NAME"] == folder.name
        ours = {key for key in told if key.startswith("MIRRORLESS_")}
        assert ours <= {str(about.alias) for about in model.model_fields.values()}
    assert {path.parent.name for path in (ROOT / "functions").glob("*/app.py")} == {
        one["CodeUri"].rpartition("/")[2] for one in found.values()
    }


def test_only_functions_with_a_trigger_have_a_place_for_refused_records() -> None:
    flow = environment().nested["Forward"]
    triggered = {one["FunctionName"].strip("<>") for one in triggers(flow).values()}
    told = {name for name in flow.of_type(FUNCTIONS) if "MIRRORLESS_FAILURES" in variables(flow, name)}
    assert triggered == told == {"Checkpoint", "HeartbeatMonitor"}


def test_a_function_ends_before_lambda_ends_it_and_keeps_to_its_number() -> None:
    flow = environment().nested["Forward"]
    reserved = environment(ReservedConcurrency="true").nested["Forward"].of_type(FUNCTIONS)
    assert sum(one["ReservedConcurrentExecutions"] for name, one in reserved.items() if name != "Drill") == 12
    # CloudFormation does not multiply: each of several functions that copy takes what the account has left.
    several = environment(ReservedConcurrency="true", ForwardCopyFunctions="3").nested["Forward"].of_type(FUNCTIONS)
    assert [name for name, one in several.items() if "ReservedConcurrentExecutions" not in one] == ["Copy", "Drill"]
    for name, one in flow.of_type(FUNCTIONS).items():
        timeout = one.get("Timeout", flow.globals["Timeout"])
        assert 60 <= timeout <= 900
        assert "ReservedConcurrentExecutions" not in one  # a new account has ten in total
        assert one["EventInvokeConfig"]["MaximumRetryAttempts"] == 0
        # The next one does its work, but the next drill is a week later.
        assert ("DestinationConfig" in one["EventInvokeConfig"]) == (name == "Drill")


def test_functions_that_copy_are_as_many_and_as_large_as_the_parameters_have_it() -> None:
    given = {"ForwardCopyFunctions": "3", "ForwardCopyMemory": "1769", "BackwardCopyFunctions": "2"}
    both = environment(BackwardEnabled="true", **given)
    there, back = (both.nested[name] for name in ("Forward", "Backward"))
    assert (variables(there, "Copy")["MIRRORLESS_COPY_FUNCTIONS"], memory(there)) == ("3", 1769)
    assert (variables(back, "Copy")["MIRRORLESS_COPY_FUNCTIONS"], memory(back)) == ("2", 256)
    assert variables(environment().nested["Forward"], "Copy")["MIRRORLESS_COPY_FUNCTIONS"] == "1"
    # The supervisor knows how many have to run.
    assert variables(there, "JobSupervisor")["MIRRORLESS_COPY_FUNCTIONS"] == "3"
    assert variables(back, "JobSupervisor")["MIRRORLESS_COPY_FUNCTIONS"] == "2"


def memory(flow: Stack) -> int:
    """Return the MB of each function that copies."""
    return int(flow.of_type(FUNCTIONS)["Copy"]["MemorySize"])


SCRAM: Final = "{alias}.security.protocol=SASL_SSL\n{alias}.sasl.mechanism=SCRAM-SHA-512\n"


def triggers(flow: Stack) -> dict[str, dict[str, Any]]:
    """Return the event source mappings of a flow."""
    return flow.nested["KafkaTriggers"].of_type(TRIGGERS)


@pytest.mark.parametrize("location", ["source", "target"])
def test_triggers_are_on_the_topics_that_the_copy_and_the_heartbeats_write(location: str, tmp_path: Path) -> None:
    line = f"offset-syncs.topic.location={location}\n"
    flow = environment(line).nested["Forward"]
    settings = tmp_path / "mm2.properties"
    settings.write_text(configuration(line))
    syncs = offset_syncs_topic(load(str(settings)).flow("primary->backup"))
    trigger = triggers(flow)["OffsetSyncs"]
    assert trigger["Topics"] == [syncs.name]
    assert trigger["EventSourceArn"] == cluster_arn(syncs.cluster.alias)
    beats = triggers(flow)["Heartbeats"]
    assert beats["Topics"] == ["primary.heartbeats"]
    assert beats["EventSourceArn"] == cluster_arn("backup")
    assert all(one["DestinationConfig"]["OnFailure"]["Destination"] == "<Failures.Arn>" for one in (trigger, beats))


def test_another_topic_or_source_replaces_the_trigger() -> None:
    """For StartingPositionTimestamp CloudFormation replaces a mapping; two of a source may not be one group."""
    usual = triggers(environment(custom_since="1000").nested["Forward"])
    for one in usual.values():
        assert (one["StartingPosition"], one["StartingPositionTimestamp"]) == ("AT_TIMESTAMP", "1000")

    def groups(flow: Stack) -> dict[str, str]:
        return {
            name: (one.get("AmazonManagedKafkaEventSourceConfig") or one["SelfManagedKafkaEventSourceConfig"])[
                "ConsumerGroupId"
            ]
            for name, one in triggers(flow).items()
        }

    before = groups(environment().nested["Forward"])
    separated = groups(environment("replication.policy.separator=_\n").nested["Forward"])
    assert separated["Heartbeats"] != before["Heartbeats"]
    moved = groups(environment(FirstClusterArn=cluster_arn("other")).nested["Forward"])
    assert moved["OffsetSyncs"] != before["OffsetSyncs"]
    assert moved["Heartbeats"] == before["Heartbeats"]
    assert groups(environment("tasks.max=4\n").nested["Forward"]) == before
    # The roles may use each of them.
    for function, sid in (("checkpoint", "OffsetSyncs"), ("heartbeat_monitor", "Heartbeats")):
        flow = environment().nested["Forward"]
        (group,) = [one for one in statements(flow, function) if one["Sid"] == "TriggerGroup"]
        assert fnmatchcase(before[sid], group["Resource"].rpartition("/")[2])


def test_a_trigger_has_no_more_bootstrap_servers_than_lambda_takes() -> None:
    servers = ",".join(f"b{number}:9098" for number in range(12))
    outside = environment(f"primary.bootstrap.servers={servers}\n", FirstClusterArn="", Triggers="all")
    passed = triggers(outside.nested["Forward"])["OffsetSyncs"]["SelfManagedEventSource"]["Endpoints"]
    assert passed["KafkaBootstrapServers"] == servers.split(",")[:10]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (cluster_arn("primary"), cluster_arn("backup"), {"OffsetSyncs", "Heartbeats"}),
        (cluster_arn("primary", region="us-east-1"), cluster_arn("backup"), {"Heartbeats"}),
        (cluster_arn("primary", account="444455556666"), cluster_arn("backup"), {"Heartbeats"}),
        (cluster_arn("primary"), cluster_arn("backup", region="us-east-1"), {"OffsetSyncs"}),
        ("", "", set()),
        ("", cluster_arn("backup"), {"Heartbeats"}),
    ],
    ids=["here", "two regions", "two accounts", "from here", "no MSK", "to MSK"],
)
def test_lambda_polls_only_clusters_of_its_own_region_and_account(first: str, second: str, expected: set[str]) -> None:
    flow = environment(FirstClusterArn=first, SecondClusterArn=second).nested["Forward"]
    assert set(triggers(flow)) == expected
    # The same rights on topics and groups, wherever the cluster is.
    sids = {one["Sid"] for one in statements(flow, "checkpoint")}
    assert ("SourceGroups" in sids) == bool(first)
    assert ("TriggerFindsCluster" in sids) == ("OffsetSyncs" in expected)
    off = environment(FirstClusterArn=first, SecondClusterArn=second, Triggers="off").nested["Forward"]
    assert not triggers(off)


def test_a_cluster_of_another_account_is_polled_by_its_vpc_connection() -> None:
    connection = "arn:aws:kafka:eu-central-1:444455556666:vpc-connection/111122223333/primary/0f1e2d3c-1"
    elsewhere = cluster_arn("primary", account="444455556666")
    flow = environment(FirstClusterArn=elsewhere, FirstTriggerArn=connection).nested["Forward"]
    assert triggers(flow)["OffsetSyncs"]["EventSourceArn"] == connection
    allowed = statements(flow, "checkpoint")
    (found,) = [one for one in allowed if one["Sid"] == "TriggerFindsCluster"]
    assert found["Resource"] == [connection, elsewhere]
    (topics,) = [one for one in allowed if one["Sid"] == "TriggerTopic"]
    assert topics["Resource"].startswith(elsewhere.replace(":cluster/", ":topic/"))


def test_a_cluster_off_msk_is_polled_from_the_subnets_with_its_secret() -> None:
    outside: dict[str, Any] = {
        "first": SCRAM,
        "FirstClusterArn": "",
        "FirstSecretArn": "arn:first",
        "FirstRootCaSecretArn": "arn:ca",
    }
    assert not triggers(environment(**outside).nested["Forward"]).keys() & {"OffsetSyncs"}
    trigger = triggers(environment(**outside, Triggers="all").nested["Forward"])["OffsetSyncs"]
    assert "EventSourceArn" not in trigger
    assert trigger["SelfManagedEventSource"] == {"Endpoints": {"KafkaBootstrapServers": ["a1:9098", "a2:9098"]}}
    assert trigger["SourceAccessConfigurations"] == [
        {"Type": "VPC_SUBNET", "URI": "subnet:subnet-1"},
        {"Type": "VPC_SUBNET", "URI": "subnet:subnet-2"},
        {"Type": "VPC_SECURITY_GROUP", "URI": "security_group:sg-1"},
        {"Type": "SASL_SCRAM_512_AUTH", "URI": "arn:first"},
        {"Type": "SERVER_ROOT_CA_CERTIFICATE", "URI": "arn:ca"},
    ]


def test_a_cluster_on_msk_needs_an_access_configuration_only_for_a_secret() -> None:
    plain = triggers(environment().nested["Forward"])["OffsetSyncs"]
    assert "SourceAccessConfigurations" not in plain
    assert "SelfManagedEventSource" not in plain
    scram = environment(first=SCRAM, FirstSecretArn="arn:first").nested["Forward"]
    assert triggers(scram)["OffsetSyncs"]["SourceAccessConfigurations"] == [
        {"Type": "SASL_SCRAM_512_AUTH", "URI": "arn:first"}
    ]
    # Without the secret Lambda could not log in: the schedule does the work.
    assert set(triggers(environment(first=SCRAM).nested["Forward"])) == {"Heartbeats"}


def test_the_job_runs_once_and_is_told_the_flow() -> None:
    flow = environment().nested["Forward"]
    job = flow.of_type("AWS::Glue::Job")["PartitionCopy"]
    assert job["GlueVersion"] == "6.0"
    assert job["Command"]["Name"] == "gluestreaming"
    release = "s3://<Artifacts>/releases/<Release.Release>"
    assert job["Command"]["ScriptLocation"] == f"{release}/partition_copy.py"
    assert job["ExecutionProperty"] == {"MaxConcurrentRuns": 1}
    arguments = job["DefaultArguments"]
    assert arguments["--MIRRORLESS_FLOW"] == variables(flow, "JobSupervisor")["MIRRORLESS_FLOW"]
    assert arguments["--MIRRORLESS_CONFIG"] == variables(flow, "JobSupervisor")["MIRRORLESS_CONFIG"]
    assert arguments["--MIRRORLESS_METRICS"] == variables(flow, "JobSupervisor")["POWERTOOLS_METRICS_NAMESPACE"]
    assert arguments["--python-virtual-env"] == f"{release}/environment.tar.gz"
    assert arguments["--MIRRORLESS_REGION"] == REGION
    # A slot's task lasts as long as its lease: no worker would ever be given back.
    assert arguments["--enable-auto-scaling"] == "false"
    # Shorter than the seven days after which Glue restarts runs, and than its longest.
    assert 9_000 < job["Timeout"] < 10_080
    logs = {one["LogGroupName"] for one in flow.of_type("AWS::Logs::LogGroup").values()}
    assert {f"{arguments['--custom-logGroup-prefix']}/{kind}" for kind in ("output", "error")} < logs


def test_the_comparison_runs_once_at_a_time_with_the_jars_to_read_kafka() -> None:
    flow = environment().nested["Forward"]
    job = flow.of_type("AWS::Glue::Job")["VerifyCopy"]
    assert (job["GlueVersion"], job["Command"]["Name"]) == ("6.0", "glueetl")
    assert job["Command"]["ScriptLocation"] == "s3://<Artifacts>/releases/<Release.Release>/verify_copy.py"
    assert job["ExecutionProperty"] == {"MaxConcurrentRuns": 1}
    arguments, copy = job["DefaultArguments"], flow.of_type("AWS::Glue::Job")["PartitionCopy"]["DefaultArguments"]
    same = ("--MIRRORLESS_CONFIG", "--MIRRORLESS_FLOW", "--MIRRORLESS_METRICS", "--python-virtual-env", "--TempDir")
    assert [arguments[name] for name in same] == [copy[name] for name in same]
    assert arguments["--extra-jars"] == "<Release.KafkaJars>"
    assert arguments["--report"] == "s3://<Artifacts>/verify/stack-forward"
    logs = {one["LogGroupName"] for one in flow.of_type("AWS::Logs::LogGroup").values()}
    assert {f"{arguments['--custom-logGroup-prefix']}/{kind}" for kind in ("output", "error")} < logs
    assert "--since" not in arguments  # a run by hand compares everything


def test_a_comparison_is_scheduled_only_if_wanted_and_compares_the_interval() -> None:
    assert not environment().nested["Forward"].of_type("AWS::Glue::Trigger")
    weekly = {"VerifySchedule": "cron(30 1 ? * SUN *)", "VerifySince": "8d"}
    for given, schedule, since in (
        ({"VerifySchedule": "cron(30 1 * * ? *)"}, "cron(30 1 * * ? *)", "26h"),
        (weekly, "cron(30 1 ? * SUN *)", "8d"),
    ):
        flow = environment(**given).nested["Forward"]
        (trigger,) = flow.of_type("AWS::Glue::Trigger").values()
        assert (trigger["Type"], trigger["StartOnCreation"]) == ("SCHEDULED", True)
        assert trigger["Schedule"] == schedule
        assert trigger["Actions"] == [{"JobName": "<VerifyCopy>", "Arguments": {"--since": since}}]
    for template in ("template.yaml", "flow.yaml"):
        assert read(ROOT / "infra" / template)["Parameters"]["VerifySchedule"]["Default"] == ""


def test_the_jobs_own_arguments_are_those_of_its_script() -> None:
    for name, job in environment().nested["Forward"].of_type("AWS::Glue::Job").items():
        script = (ROOT / "glue_jobs" / job["Command"]["ScriptLocation"].rpartition("/")[2]).read_text()
        script += (ROOT / "src" / "mirrorless" / "publishing" / "glue_session.py").read_text()
        glues = {"--python-virtual-env", "--extra-jars", "--job-language", "--enable-auto-scaling", "--TempDir"}
        own = set(job["DefaultArguments"]) - glues - {"--custom-logGroup-prefix"}
        assert own
        assert all(f'"{one}"' in script for one in own), name


def test_a_report_is_written_where_the_role_allows_it() -> None:
    flow = environment().nested["Forward"]
    role = flow.nested["Roles"].of_type("AWS::IAM::Role")["VerifyCopyRole"]
    (report,) = [one for one in role["Policies"][0]["PolicyDocument"]["Statement"] if one["Sid"] == "Report"]
    assert report["Resource"] == "arn:aws:s3:::<Artifacts>/verify/stack-forward/*"


def test_a_drill_is_weekly_and_may_wait_for_hours() -> None:
    flow = environment().nested["Forward"]
    drill = flow.of_type(FUNCTIONS)["Drill"]
    assert drill["Events"] == {
        "Rate": {"Type": "Schedule", "Properties": {"Schedule": "cron(0 4 ? * MON *)", "State": "ENABLED"}}
    }
    off = environment(DrillSchedule="").nested["Forward"].of_type(FUNCTIONS)["Drill"]
    assert off["Events"]["Rate"]["Properties"] == {"Schedule": "rate(7 days)", "State": "DISABLED"}
    assert drill["Timeout"] == 900
    assert (
        "ReservedConcurrentExecutions"
        not in environment(ReservedConcurrency="true").nested["Forward"].of_type(FUNCTIONS)["Drill"]
    )
    assert drill["EventInvokeConfig"] == {
        "MaximumRetryAttempts": 0,
        "MaximumEventAgeInSeconds": 21_600,
        "DestinationConfig": {"OnFailure": {"Type": "SQS", "Destination": "<Failures.Arn>"}},
    }


def test_a_drill_writes_its_report_where_its_role_allows_it_and_nowhere_else() -> None:
    flow = environment().nested["Forward"]
    assert variables(flow, "Drill")["MIRRORLESS_REPORTS"] == "s3://<Artifacts>/drill/stack-forward"
    s3 = [one for one in statements(flow, "drill") if "s3:PutObject" in str(one["Action"])]
    assert [(one["Action"], one["Resource"]) for one in s3] == [
        ("s3:PutObject", "arn:aws:s3:::<Artifacts>/drill/stack-forward/*")
    ]


def test_a_comparison_that_failed_is_a_message_in_the_queue_of_failures() -> None:
    flow = environment().nested["Forward"]
    rule = flow.of_type("AWS::Events::Rule")["VerifyFailed"]
    assert rule["EventPattern"]["detail"] == {"jobName": ["<VerifyCopy>"], "state": ["FAILED", "TIMEOUT", "ERROR"]}
    assert [one["Arn"] for one in rule["Targets"]] == ["<Failures.Arn>"]
    (policy,) = flow.of_type("AWS::SQS::QueuePolicy").values()
    only_tls, statement = policy["PolicyDocument"]["Statement"]
    assert (only_tls["Effect"], only_tls["Condition"]) == ("Deny", {"Bool": {"aws:SecureTransport": "false"}})
    assert (statement["Action"], statement["Resource"]) == ("sqs:SendMessage", "<Failures.Arn>")
    assert statement["Condition"] == {"ArnEquals": {"aws:SourceArn": "<VerifyFailed.Arn>"}}


def test_the_supervisor_hears_of_the_end_of_its_own_job() -> None:
    flow = environment().nested["Forward"]
    pattern = flow.of_type(FUNCTIONS)["JobSupervisor"]["Events"]["RunEnded"]["Properties"]["Pattern"]
    assert pattern["detail"]["jobName"] == ["<PartitionCopy>"] == [variables(flow, "JobSupervisor")["MIRRORLESS_JOB"]]
    assert set(pattern["detail"]["state"]) == OVER


def test_the_supervisor_knows_the_release_of_the_job() -> None:
    def release(**parameters: Any) -> str:  # noqa: ANN401
        flow = environment(**parameters).nested["Forward"]
        told = variables(flow, "JobSupervisor")["MIRRORLESS_RELEASE"]
        assert flow.of_type("AWS::Glue::Job")["PartitionCopy"]["DefaultArguments"]["--MIRRORLESS_RELEASE"] == told
        return told

    usual = release()
    assert "<Release.Release>" in usual
    # What reaches a run only at its start makes another release.
    others = ({"ForwardWorkers": "9"}, {"ForwardWorkerType": "G.2X"}, {"ConfigLocation": "s3://b/k?versionId=2"})
    assert len({usual, *(release(**one) for one in others)}) == 4


def test_the_jobs_are_in_the_zone_of_their_subnet() -> None:
    flow = environment().nested["Forward"]
    (connection,) = flow.of_type("AWS::Glue::Connection").values()
    where = connection["ConnectionInput"]["PhysicalConnectionRequirements"]
    assert (where["SubnetId"], where["AvailabilityZone"]) == ("subnet-1", f"{REGION}a")
    assert flow.resources["Settings"]["Properties"]["SubnetId"] == where["SubnetId"]


def test_every_log_group_has_its_end() -> None:
    both = environment(BackwardEnabled="true", LogRetentionDays=7, LogKmsKeyArn="arn:key")
    groups = [one for stack in both.nested.values() for one in stack.of_type("AWS::Logs::LogGroup").values()]
    assert len({one["LogGroupName"] for one in groups}) == len(groups) == 11
    assert {one["RetentionInDays"] for one in groups} == {7}
    assert {one["KmsKeyId"] for one in groups} == {"arn:key"}


def test_schedules_are_as_often_as_the_settings_have_it_by_default() -> None:
    flow = environment().nested["Forward"]
    found = {
        name: event["Properties"]["Schedule"]
        for name, one in flow.of_type(FUNCTIONS).items()
        for event in one["Events"].values()
        if event["Type"] == "Schedule" and name != "Drill"
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
        "Copy": 60,
    }


def seconds(rate: str) -> int:
    """Return how often a rate is; EventBridge wants `1 minute`, but `2 minutes`."""
    found = re.fullmatch(r"rate\((?:1 minute|(\d+) minutes)\)", rate)
    assert found is not None, rate
    return 60 * int(found[1] or 1)

"""topic_discovery, config_sync and acl_sync keep a flow's metadata in step, invocation by invocation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from tests.support.events import schedule

if TYPE_CHECKING:
    from tests.functions.conftest import Aws, Start
    from tests.support.world import World


def partitions(world: World, topic: str) -> int:
    topics = AdminClient({"bootstrap.servers": world.target.bootstrap_servers}).list_topics(timeout=60).topics
    return len(topics[topic].partitions) if topic in topics else 0


def test_new_topics_are_created_and_found_done_by_the_next_invocation(world: World, start: Start) -> None:
    topic = world.topic(partitions=3)
    function = start("topic_discovery")

    first = function.invoke(schedule())
    assert partitions(world, world.remote(topic)) == 3
    assert first == {"flow": world.flow, "changed": 3, "failed": 0, "problems": 0}

    assert function.invoke(schedule())["changed"] == 0
    assert function.metrics()["topics-created"] == [3]
    assert "topics-failed" not in function.metrics()  # no zeros


def test_near_its_limit_an_invocation_says_what_is_left_and_the_next_one_does_it(world: World, start: Start) -> None:
    topic = world.topic()
    function = start("topic_discovery")

    answer = function.invoke(schedule(), timeout_s=60)  # as much as is kept for an orderly end
    assert answer["changed"] == 0
    assert f"CreateTopic {world.remote(topic)}" in answer["left"]
    assert partitions(world, world.remote(topic)) == 0

    assert function.invoke(schedule())["changed"] == len(answer["left"])
    assert partitions(world, world.remote(topic)) == 1
    assert function.metrics()["units-left"] == [len(answer["left"])]


def test_where_topics_are_not_looked_for_an_invocation_by_hand_does_so_once(world: World, start: Start) -> None:
    topic = world.topic()
    world.write_settings(**{"refresh.topics.enabled": "false"})
    function = start("topic_discovery")
    assert function.invoke(schedule())["note"] == "topics are disabled in the configuration"
    assert partitions(world, world.remote(topic)) == 0
    function.invoke({})
    assert partitions(world, world.remote(topic)) == 1


def test_a_flow_that_is_not_enabled_any_more_is_an_error_and_nothing_is_done(world: World, start: Start) -> None:
    topic = world.topic()
    world.write_settings(**{f"{world.flow}.enabled": "false"})
    function = start("topic_discovery")
    function.begin(schedule())
    error = function.end().error
    assert error is not None
    assert error["errorType"] == "FlowNotEnabled"
    assert partitions(world, world.remote(topic)) == 0


def test_configs_follow(world: World, start: Start) -> None:
    topic = world.topic()
    world.discover()
    admin = AdminClient({"bootstrap.servers": world.source.bootstrap_servers})
    change = ConfigEntry("retention.ms", "7654321", incremental_operation=AlterConfigOpType.SET)
    wanted = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[change])
    next(iter(admin.incremental_alter_configs([wanted]).values())).result()

    function = start("config_sync")
    assert function.invoke(schedule())["changed"] == 1
    assert function.metrics()["configs-changed"] == [1]
    (line,) = [line for line in function.lines() if line.get("message") == "AlterConfigs"]
    assert line["topic"] == world.remote(topic)
    assert line["service"] == "config_sync"
    assert line["flow"] == world.flow


def test_clusters_without_acls_are_a_note(world: World, start: Start) -> None:
    world.topic()
    function = start("acl_sync")
    assert function.invoke(schedule()) == {"flow": world.flow, "changed": 0, "failed": 0, "problems": 0}
    (line,) = [line for line in function.lines() if line.get("message") == "Note"]
    assert line["note"].startswith("ACLs are not synced: ")


def test_the_configuration_comes_from_s3_with_secrets_and_parameters(world: World, aws: Aws, start: Start) -> None:
    topic = world.topic()
    aws.client("secretsmanager").create_secret(
        Name=f"{world.flow}/kafka".replace("->", "-"), SecretString=world.target.bootstrap_servers
    )
    aws.client("ssm").put_parameter(Name=f"/{world.source_alias}", Value=world.source.bootstrap_servers, Type="String")
    secret = f"{world.flow}/kafka".replace("->", "-")
    world.write_settings(
        **{
            f"{world.target_alias}.bootstrap.servers": f"${{secretsmanager:{secret}}}",
            f"{world.source_alias}.bootstrap.servers": f"${{ssm:/{world.source_alias}}}",
        }
    )
    bucket = aws.bucket()
    aws.client("s3").put_object(Bucket=bucket, Key="mm2.properties", Body=world.file.read_bytes())
    function = start("topic_discovery", MIRRORLESS_CONFIG=f"s3://{bucket}/mm2.properties")
    assert function.invoke(schedule())["failed"] == 0
    assert partitions(world, world.remote(topic)) == 1


def test_an_error_is_one_line_and_fails_the_invocation(world: World, start: Start) -> None:
    world.topic()
    world.write_settings(**{f"{world.target_alias}.bootstrap.servers": world.source.bootstrap_servers})
    function = start("topic_discovery")
    function.begin(schedule())
    error = function.end().error
    assert error is not None
    assert error["errorType"] == "SameClusterError"
    (line,) = [line for line in function.lines() if line.get("level") == "ERROR" and "error" in line]
    assert line["message"] == error["errorMessage"]
    assert line["message"].startswith(f"flow {world.flow}: source and target are the same cluster (id ")
    assert line["retriable"] is False


def test_a_variable_that_is_missing_is_named(world: World, start: Start) -> None:
    world.topic()
    function = start("topic_discovery", MIRRORLESS_FLOW=" ")
    function.begin(schedule())
    error = function.end().error
    assert error is not None
    assert error["errorMessage"] == "MIRRORLESS_FLOW: is empty; set it in the function's environment"

"""On MSK Serverless only the configs that it accepts are replicated, ACLs are not asked for, and both are noted."""

from __future__ import annotations

from typing import Final

import pytest

from mirrorless.clusters.acls import NoAcls, topic_acls
from mirrorless.clusters.compaction import compacting
from mirrorless.clusters.configs import Configs, ConfigValue, Origin
from mirrorless.clusters.msk import is_serverless, region_of
from mirrorless.metadata.config_plan import creation_config, plan_configs
from mirrorless.metadata.serverless import not_created_with, not_synced, target_filter
from mirrorless.settings import Cluster, Flow

SERVERS: Final = "boot-a1b2c3d4.c1.kafka-serverless.eu-west-1.amazonaws.com:9098"
SOURCE: Final = Cluster(alias="A", bootstrap_servers="a:1")
SERVERLESS: Final = Flow(source=SOURCE, target=Cluster(alias="B", bootstrap_servers=SERVERS))
USUAL: Final = Flow(source=SOURCE, target=Cluster(alias="B", bootstrap_servers="b:1"))


def configs(**values: str) -> Configs:
    return {name.replace("_", "."): ConfigValue(value, Origin.TOPIC) for name, value in values.items()}


OWN: Final = configs(cleanup_policy="compact", retention_ms="7", segment_bytes="8", min_compaction_lag_ms="9")


@pytest.mark.parametrize(
    ("servers", "region", "serverless"),
    [
        (SERVERS, "eu-west-1", True),
        ("b-1.primary.a1b2.c3.kafka.us-east-1.amazonaws.com:9098", "us-east-1", False),
        ("boot-x.c1.kafka-serverless.ap-south-1.api.aws:9098", "ap-south-1", True),
        ("kafka-serverless.example:9092", None, False),
        ("127.0.0.1:9092", None, False),
    ],
)
def test_clusters_on_msk_are_recognised_by_name(servers: str, region: str | None, serverless: bool) -> None:
    assert region_of(servers) == region
    assert is_serverless(Cluster(alias="A", bootstrap_servers=servers)) is serverless


def test_a_topic_is_created_with_the_configs_that_serverless_accepts() -> None:
    chosen = target_filter(SERVERLESS, on_creation=True)
    assert creation_config(chosen, OWN) == {"cleanup.policy": "compact", "retention.ms": "7"}
    assert creation_config(target_filter(USUAL, on_creation=True), OWN).keys() == OWN.keys()
    (note,) = not_created_with(SERVERLESS, {"t": OWN, "u": OWN, "v": configs(retention_ms="7")})
    assert note == (
        "B is MSK Serverless, which does not let min.compaction.lag.ms, segment.bytes be set (2 topics, among them t)"
    )
    assert not_created_with(USUAL, {"t": OWN}) == []


def test_the_sync_of_configs_leaves_what_serverless_would_refuse_at_every_run() -> None:
    remote, source = {"t": "A.t"}, {"t": OWN}
    target = {"A.t": {name: ConfigValue("0", Origin.TOPIC) for name in OWN}}
    chosen = target_filter(SERVERLESS, on_creation=False)
    (action,), _ = plan_configs(chosen, remote=remote, source=source, target=target)
    assert [one.name for one in action.differences] == ["retention.ms"]
    assert not_synced(SERVERLESS, remote=remote, source=source, target=target) == [
        "B is MSK Serverless, which does not let cleanup.policy, min.compaction.lag.ms, segment.bytes be set (1 topic, "
        "among them A.t); cleanup.policy can be set only when a topic is created"
    ]
    assert not_synced(USUAL, remote=remote, source=source, target=target) == []
    assert not_synced(SERVERLESS, remote=remote, source=source, target={"A.t": OWN}) == []


def test_acls_of_serverless_are_not_asked_for() -> None:
    found = topic_acls(SERVERLESS.target)
    assert found == NoAcls("cluster B is MSK Serverless, which has no ACLs")
    assert isinstance(found, NoAcls)
    assert not found.lacks_right


def test_the_fix_of_a_topic_that_is_not_compacted_is_one_that_works() -> None:
    assert "kafka-configs.sh" in compacting(USUAL.target, "t")
    assert "kafka-configs.sh" not in compacting(SERVERLESS.target, "t")

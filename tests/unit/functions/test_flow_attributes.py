"""What a deployment takes from the configuration: names, rates, logins and triggers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mirrorless.errors import ConfigurationError, FlowNotEnabled
from mirrorless.functions.flow_attributes import FlowProperties, attributes, authentication, rate
from mirrorless.settings import load

if TYPE_CHECKING:
    from pathlib import Path

    from mirrorless.settings import Settings

TWO = "clusters=a.b,c\na.b.bootstrap.servers=x:1, y:1\nc.bootstrap.servers=z:1\na.b->c.enabled=true\n"


def settings(folder: Path, text: str) -> Settings:
    file = folder / "mm2.properties"
    file.write_text(text)
    return load(str(file))


def properties(**given: str) -> FlowProperties:
    return FlowProperties.model_validate({"ConfigLocation": "ssm:/x", **given})


def test_the_configuration_says_what_the_templates_cannot_read(tmp_path: Path) -> None:
    text = TWO + (
        "replication.policy.separator=_\noffset.storage.topic=progress\nsync.group.offsets.enabled=true\n"
        "mirrorless.acls.prune=true\nerrors.deadletterqueue.topic.name=dead\nemit.checkpoints.interval.seconds=5\n"
        "sync.topic.acls.interval.seconds=61\nmirrorless.sync.kinds=quotas\n"
    )
    found = attributes(settings(tmp_path, text), properties(Topics="orders*"))
    expected = {
        "Flow": "a.b->c",
        "SourceAlias": "a.b",
        "TargetAlias": "c",
        "RemoteTopics": "a.b_orders*",
        "ReverseRemoteTopics": "c_*",
        "Separator": "_",
        "InternalSeparator": "_",
        "OffsetSyncsLocation": "source",
        "ProgressTopic": "progress",
        "DeadLetterTopic": "dead",
        "StartGroup": "",
        "SyncGroupOffsets": "true",
        "PruneAcls": "true",
        "SyncKinds": "true",
        "SyncTopicDeletes": "false",
        "Offsets": "dense",
        "ReverseEnabled": "false",
        "Heartbeats": "true",
        "TopicDiscoveryRate": "rate(10 minutes)",
        "AclSyncRate": "rate(2 minutes)",
        "CheckpointRate": "rate(1 minute)",
        "OffsetSyncsTopic": "mm2-offset-syncs_c_internal",
        "OffsetSyncsBootstrapServers": "x:1,y:1",
        "HeartbeatsTopic": "a.b_heartbeats",
        "HeartbeatsBootstrapServers": "z:1",
    }
    assert {name: found[name] for name in expected} == expected


def test_without_a_name_the_flow_is_the_only_pairs_first(tmp_path: Path) -> None:
    both = settings(tmp_path, TWO + "c->a.b.enabled=true\n")
    assert attributes(both, properties())["Flow"] == "a.b->c"
    assert attributes(both, properties(Reverse="true"))["Flow"] == "c->a.b"
    assert attributes(both, properties(Flow="c -> a.b"))["Flow"] == "c->a.b"
    assert attributes(both, properties())["ReverseEnabled"] == "true"
    several = settings(tmp_path, TWO.replace("a.b,c", "a.b,c,d") + "d.bootstrap.servers=v:1\na.b->d.enabled=true\n")
    with pytest.raises(ConfigurationError, match=r"set the parameter Flow to one of: a\.b->c, a\.b->d"):
        attributes(several, properties())
    with pytest.raises(FlowNotEnabled, match=r"c->a\.b\.enabled"):
        attributes(several, properties(Flow="a.b->c", Reverse="true"))


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("", "NONE"),
        ("c.security.protocol=SSL\n", "NONE"),
        ("c.security.protocol=SSL\nc.ssl.keystore.location=/k\n", "CLIENT_CERTIFICATE_TLS_AUTH"),
        ("c.security.protocol=SASL_SSL\nc.sasl.mechanism=AWS_MSK_IAM\n", "IAM"),
        (
            "c.security.protocol=SASL_SSL\nc.sasl.mechanism=OAUTHBEARER\n"
            "c.sasl.login.callback.handler.class=software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler\n",
            "IAM",
        ),
        ("c.security.protocol=SASL_SSL\nc.sasl.mechanism=SCRAM-SHA-512\n", "SASL_SCRAM_512_AUTH"),
        ("c.security.protocol=SASL_PLAINTEXT\nc.sasl.mechanism=PLAIN\n", "BASIC_AUTH"),
        ("c.security.protocol=SASL_SSL\nc.sasl.mechanism=OAUTHBEARER\n", "OAUTHBEARER"),
    ],
)
def test_triggers_log_in_as_the_clients_do(lines: str, expected: str, tmp_path: Path) -> None:
    (flow,) = settings(tmp_path, TWO + lines).flows
    assert authentication(flow.target) == expected


@pytest.mark.parametrize(
    ("mechanism", "secret", "source"),
    [
        ("AWS_MSK_IAM", "", "arn:c"),
        ("SCRAM-SHA-512", "", ""),
        ("SCRAM-SHA-512", "arn:s", "arn:c"),
        ("OAUTHBEARER", "arn:s", ""),
    ],
)
def test_where_lambda_cannot_log_in_there_is_no_trigger(
    mechanism: str, secret: str, source: str, tmp_path: Path
) -> None:
    text = f"{TWO}c.security.protocol=SASL_SSL\nc.sasl.mechanism={mechanism}\n"
    given = properties(SourceTrigger="arn:a", TargetTrigger="arn:c", TargetSecretArn=secret)
    found = attributes(settings(tmp_path, text), given)
    assert (found["OffsetSyncsEventSource"], found["HeartbeatsEventSource"]) == ("arn:a", source)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(1, "rate(1 minute)"), (60, "rate(1 minute)"), (61, "rate(2 minutes)"), (600, "rate(10 minutes)")],
)
def test_a_rate_is_whole_minutes_as_eventbridge_has_it(seconds: int, expected: str) -> None:
    assert rate(seconds) == expected


def test_rights_cover_the_names_that_rules_give(tmp_path: Path) -> None:
    text = (
        "clusters=a,c\na.bootstrap.servers=x:1\nc.bootstrap.servers=z:1\na->c.enabled=true\nc->a.enabled=true\n"
        "a->c.mirrorless.topics.rename=(.*) -> v2.$1\n"
    )
    for topics, reverse, there, back in (
        ("orders*", "v2.orders*", "a.*", "c.*"),
        ("orders", "v2.orders", "a.v2.orders", "c.orders"),
    ):
        found = attributes(settings(tmp_path, text), properties(Flow="a->c", Topics=topics, ReverseTopics=reverse))
        assert (found["RemoteTopics"], found["ReverseRemoteTopics"]) == (there, back)

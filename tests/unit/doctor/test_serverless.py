"""The doctor names what MSK Serverless lacks, and counts compacted partitions against its quota."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

import pytest

from mirrorless.clusters.configs import ConfigValue, Origin
from mirrorless.doctor import serverless as checked
from mirrorless.doctor.findings import Finding, Status
from mirrorless.doctor.rights_check import Names, rights_there
from mirrorless.doctor.serverless import serverless
from mirrorless.errors import ClusterUnavailable
from mirrorless.rights import Function, Side
from mirrorless.settings import Cluster, Flow

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mirrorless.clusters.admin import Admin
    from mirrorless.clusters.configs import Configs
    from mirrorless.doctor.probes import Probes

FLOW: Final = Flow(
    source=Cluster(alias="A", bootstrap_servers="a:1"),
    target=Cluster(alias="B", bootstrap_servers="boot-a.c1.kafka-serverless.eu-west-1.amazonaws.com:9098"),
)
ADMIN: Final = cast("Admin", None)


def findings(
    monkeypatch: pytest.MonkeyPatch,
    flow: Flow,
    *,
    policies: Mapping[str, str],
    counts: Mapping[str, int],
    remote: Mapping[str, int] | None = None,
) -> list[Finding]:
    def described(_: Admin, topics: Mapping[str, int]) -> tuple[dict[str, Configs], dict[str, str]]:
        assert topics == counts
        found = {topic: {"cleanup.policy": ConfigValue(policy, Origin.TOPIC)} for topic, policy in policies.items()}
        return found, dict.fromkeys(topics.keys() - policies.keys(), "refused")

    monkeypatch.setattr(checked, "topic_configs", described)
    return serverless(flow, Side.TARGET, admin=ADMIN, counts=counts, remote=remote or {})


def test_internal_topics_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    lacks, quota = findings(monkeypatch, FLOW, policies={}, counts={})
    assert lacks.status is quota.status is Status.OK
    assert lacks.text.startswith("no ACLs (acl_sync does nothing), logins by IAM only, ")
    assert quota.text == "27 of at most 120: 25 of mm2-offsets.A.internal, 1 of heartbeats, 1 of A.checkpoints.internal"


def test_too_many_compacted_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    _, quota = findings(
        monkeypatch,
        FLOW,
        policies={"tables": "compact", "log": "delete", "both": "compact,delete"},
        counts={"tables": 60, "log": 500, "both": 10, "hidden": 3},
        remote={"A.users": 30, "tables": 60},
    )
    assert quota.status is Status.FAILED
    assert quota.text == (
        "127 of at most 120: 25 of mm2-offsets.A.internal, 1 of heartbeats, 1 of A.checkpoints.internal, 100 of 3 "
        "other topics; 1 topics are not counted, since reading their configs failed"
    )
    assert quota.fix == (
        "set offset.storage.partitions to 18 or less before the progress topic is created, exclude compacted topics "
        "with topics.exclude, or ask AWS to raise the quota"
    )


def test_an_existing_progress_topic_counts_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    name = FLOW.offset_storage_topic
    _, quota = findings(monkeypatch, FLOW, policies={name: "compact"}, counts={name: 7})
    assert quota.text.startswith("9 of at most 120: 7 of mm2-offsets.A.internal, ")


def test_a_cluster_that_does_not_answer_is_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    def unavailable(*_: object) -> None:
        raise ClusterUnavailable("no answer", cluster="B")

    monkeypatch.setattr(checked, "topic_configs", unavailable)
    _, quota = serverless(FLOW, Side.TARGET, admin=ADMIN, counts={}, remote={})
    assert (quota.status, quota.text) == (Status.NOT_CHECKED, "cluster B: no answer")


def test_other_clusters_have_no_such_checks() -> None:
    assert serverless(FLOW, Side.SOURCE, admin=ADMIN, counts={}, remote={}) == []


class Refuses:
    """A cluster that grants nothing on the cluster itself."""

    def may_on_cluster(self, _: str) -> bool:
        return False

    def refused_topics(self, *_: object) -> list[str]:
        return []

    refused_groups = refused_topics


def test_rights_to_acls_are_not_asked_for() -> None:
    probes = cast("Probes", Refuses())
    names = Names(("t",), ("g",))
    required = [
        one for one in rights_there(FLOW, Side.TARGET, probes=probes, names=names) if one.status is Status.FAILED
    ]
    assert required == []
    usual = FLOW.model_copy(update={"target": FLOW.source})
    refused = [one.check for one in rights_there(usual, Side.TARGET, probes=probes, names=names) if one.fix]
    assert "ALTER on cluster" in refused


@pytest.mark.parametrize("function", [Function.VERIFY_COPY, Function.DRILL])
def test_what_only_compares_acls_is_not_asked_for_the_right_either(function: Function) -> None:
    probes, names = cast("Probes", Refuses()), Names(("t",), ("g",))
    source, target = (
        {one.check for one in rights_there(FLOW, side, probes=probes, names=names, functions=[function])}
        for side in Side
    )
    assert "DESCRIBE on cluster" in source
    assert "DESCRIBE on cluster" not in target

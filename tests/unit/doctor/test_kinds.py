"""What a cluster on MSK does not have is said once, and is a warning only if it was asked for."""

from __future__ import annotations

import pytest

from mirrorless.doctor.findings import Status
from mirrorless.doctor.kinds import absent_kinds
from mirrorless.metadata.kinds import KINDS
from mirrorless.rights import Side
from mirrorless.settings import Cluster
from tests.support.drill_facts import flow_with

SERVERLESS = "boot-x.c1.kafka-serverless.eu-central-1.amazonaws.com:9098"
IAM = {"security.protocol": "SASL_SSL", "sasl.mechanism": "AWS_MSK_IAM"}


@pytest.mark.parametrize("kinds", [(), ("quotas", "group-acls")])
def test_msk_serverless_has_nothing_but_topics(kinds: tuple[str, ...]) -> None:
    flow = flow_with(sync_kinds=kinds).model_copy(update={"target": Cluster(alias="b", bootstrap_servers=SERVERLESS)})
    (found,) = absent_kinds(flow, Side.TARGET)
    assert {kind.name for kind in KINDS if kind.name in found.text} == {
        one.name for one in KINDS if not one.on_serverless
    }
    assert found.status is (Status.WARNING if kinds else Status.OK)
    assert found.fix == ("remove group-acls, quotas from mirrorless.sync.kinds" if kinds else None)
    assert absent_kinds(flow, Side.SOURCE) == []


def test_logins_by_iam_are_bound_by_neither_acls_nor_users() -> None:
    cluster = Cluster(alias="b", bootstrap_servers="b:9098", client=IAM)
    flow = flow_with().model_copy(update={"target": cluster})
    (found,) = absent_kinds(flow, Side.TARGET)
    assert "group-acls" in found.text
    assert "users" in found.text
    assert "quotas" not in found.text

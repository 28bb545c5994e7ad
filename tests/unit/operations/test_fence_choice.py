"""Which fence is used, and what it blocks: flows to other clusters would sync the ACLs of `acl`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mirrorless.clusters.acls import Acl
from mirrorless.errors import ConfigurationError, OperationError
from mirrorless.modes import Modes
from mirrorless.operations import fences
from mirrorless.operations.cluster_pair import ClusterPair
from mirrorless.operations.fences import resolved, without_acls
from mirrorless.settings import load

if TYPE_CHECKING:
    from pathlib import Path

    from mirrorless.settings import Settings

BASE = """
clusters = old, new, third
old.bootstrap.servers = old:1
new.bootstrap.servers = new:1
third.bootstrap.servers = third:1
old->new.enabled = true
old->third.enabled = true
third->new.enabled = true
"""
BACK = "third->old.enabled = true\nthird->old.topics = orders, clicks\n"
KEPT = "replication.policy.class = IdentityReplicationPolicy\nheartbeats.replication.enabled = false\n"


def loaded(folder: Path, more: str = "") -> Settings:
    path = folder / "mm2.properties"
    path.write_text(BASE + more)
    return load(path)


def test_acls_that_another_flow_would_sync_are_not_used(tmp_path: Path) -> None:
    settings = loaded(tmp_path)
    assert resolved(settings.flow("old->new"), settings, ["orders"]) == "config"
    settings = loaded(tmp_path, "mirrorless.fence = acl\n")
    with pytest.raises(OperationError, match="old->third would sync its ACLs"):
        resolved(settings.flow("old->new"), settings, ["orders"])
    settings = loaded(tmp_path, "mirrorless.fence = acl\nold->third.sync.topic.acls.enabled = false\n")
    assert resolved(settings.flow("old->new"), settings, ["orders"]) == "acl"


IAM = "old.security.protocol = SASL_SSL\nold.sasl.mechanism = AWS_MSK_IAM\n"


@pytest.mark.parametrize(("login", "fence"), [("", "acl"), (IAM, "config")])
def test_clients_that_log_in_with_iam_ignore_acls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, login: str, fence: str
) -> None:
    monkeypatch.setattr(fences, "topic_acls", lambda _: {acl("orders")})
    settings = loaded(tmp_path, f"{login}old->third.sync.topic.acls.enabled = false\n")
    assert resolved(settings.flow("old->new"), settings, ["orders"]) == fence


def acl(topic: str, pattern: str = "LITERAL", permission: str = "ALLOW") -> Acl:
    return Acl(topic=topic, pattern=pattern, principal="User:u", host="*", operation="READ", permission=permission)


def test_topics_without_an_acl_that_allows_something() -> None:
    topics = ["orders", "payments"]
    assert without_acls([], topics) == topics
    assert without_acls([acl("orders", permission="DENY")], topics) == topics
    assert without_acls([acl("orders")], topics) == ["payments"]
    assert without_acls([acl("pay", "PREFIXED")], topics) == ["orders"]
    assert without_acls([acl("*")], topics) == []


def test_the_cluster_to_leave_is_named_where_there_are_several(tmp_path: Path) -> None:
    settings = loaded(tmp_path)
    with pytest.raises(ConfigurationError, match="old->new, third->new; name the one that applications leave with"):
        ClusterPair.to(settings, "new")
    with pytest.raises(ConfigurationError, match="no enabled flow leads from new to third"):
        ClusterPair.to(settings, "third", "new")
    assert ClusterPair.to(settings, "third").forward.name == "old->third"
    pair = ClusterPair.to(settings, "new", "third")
    assert pair.forward.name == "third->new"
    assert [flow.name for flow in pair.overlapping] == ["old->new", "old->third"]


@pytest.mark.parametrize(
    ("more", "topics", "blocked"),
    [
        ("", ["orders", "payments"], False),
        ("", ["orders", "third.orders"], True),
        (KEPT, ["orders"], True),
        (KEPT, ["payments"], False),
    ],
)
def test_a_flow_that_appends_to_fenced_topics_is_blocked(
    tmp_path: Path, more: str, topics: list[str], blocked: bool
) -> None:
    assert Modes(loaded(tmp_path, BACK + more).flow("third->old")).appends_to(topics) is blocked

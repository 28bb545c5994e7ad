"""Transforms are refused in one line, which has what each does."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from mirrorless.settings.load import understand

if TYPE_CHECKING:
    from pathlib import Path

BASE = """
clusters = A, B, C
A.bootstrap.servers = a:1
B.bootstrap.servers = b:1
C.bootstrap.servers = c:1
A->B.enabled = true
A->C.enabled = true
"""
REST = (
    "records are copied unchanged, so no transformation can change or drop them; remove it, or leave this flow to "
    "MirrorMaker 2, which can run beside Mirrorless for the other flows"
)


def errors(folder: Path, text: str) -> list[str]:
    path = folder / "mm2.properties"
    path.write_text(BASE + text)
    return [re.sub(rf"^{re.escape(str(path))}(:\d+)?: ", "", str(error)) for error in understand(path).errors]


def test_what_each_does(tmp_path: Path) -> None:
    text = (
        "A->B.transforms = mask, route, own, gone\n"
        "A->B.transforms.mask.type = org.apache.kafka.connect.transforms.MaskField$Value\n"
        "A->B.transforms.mask.fields = card\n"
        "transforms.route.type = org.apache.kafka.connect.transforms.RegexRouter\n"
        "A->B.transforms.own.type = com.example.Own\n"
        "A->B.predicates = is\nA->B.predicates.is.type = TopicNameMatches\n"
    )
    assert errors(tmp_path, text) == [
        "A->B.transforms=mask, route, own, gone: mask (MaskField) masks fields, route (RegexRouter) renames topics, "
        f"own (Own) is a custom class, gone has no class: {REST}"
    ]


def test_at_top_level(tmp_path: Path) -> None:
    text = "transforms = drop\ntransforms.drop.type = org.apache.kafka.connect.transforms.Filter\n"

    assert errors(tmp_path, text) == [f"transforms=drop: drop (Filter) drops records: {REST}"]


def test_a_class_is_shown_only_if_it_is_one(tmp_path: Path) -> None:
    assert errors(tmp_path, "transforms = x\ntransforms.x.type = password=swordfish\n") == (
        [f"transforms=x: x has no class: {REST}"]
    )


def test_a_disabled_flow_may_have_them(tmp_path: Path) -> None:
    assert errors(tmp_path, "B->A.transforms = x\n") == []


ROUTER = "org.apache.kafka.connect.transforms.RegexRouter"
IDENTITY = "replication.policy.class = IdentityReplicationPolicy\n"


def router(regex: str, name: str, more: str = "") -> str:
    return (
        f"A->B.transforms = route\nA->B.transforms.route.type = {ROUTER}\n"
        f"A->B.transforms.route.regex = {regex}\nA->B.transforms.route.replacement = {name}\n{more}"
    )


@pytest.mark.parametrize(
    ("regex", "name", "policy", "rule"),
    [
        (r"A\\.legacy\\.(.*)", "A.$1", "", r"legacy\.(.*) -> $1"),
        (r"A\\.legacy\\.(.*)", "A.$1", "replication.policy.class = DefaultReplicationPolicy\n", r"legacy\.(.*) -> $1"),
        ("A[.]orders", "A.orders.v2", "", "orders -> orders.v2"),
        ("A_(.*)", "A_v2.$1", "replication.policy.separator = _\n", "(.*) -> v2.$1"),
        (r"legacy\\.(.*)", "$1", IDENTITY, r"legacy\.(.*) -> $1"),
    ],
)
def test_a_router_of_topics_is_read_as_a_rule(tmp_path: Path, regex: str, name: str, policy: str, rule: str) -> None:
    text = router(regex, name, policy)
    assert errors(tmp_path, text) == []
    found = understand(tmp_path / "mm2.properties")
    assert found.settings is not None
    assert found.settings.flow("A->B").topics_rename == (rule,)
    assert found.settings.flow("A->C").topics_rename == ()
    assert [line for line in found.warnings if "transforms" in line] == []
    (shown,) = [one for one in found.flows["A->B"] if one.key == "mirrorless.topics.rename"]
    assert (shown.value, shown.written) == (rule, "A->B.transforms.route.regex")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            router(r"A\\.(.*)", "$1"),
            r"it sees names with the prefix A., and regex and replacement have to begin with it (A\. and A.); to copy "
            "without the prefix, set replication.policy.class=IdentityReplicationPolicy",
        ),
        (router("legacy.(.*)", "$1", IDENTITY), r"a '.' outside a group matches any character; write '\.'"),
        (
            router(r"legacy\\.(.*)", "all", IDENTITY),
            r"rule 'legacy\\.(.*) -> all' cannot be inverted: the new name does not contain $1, so several topics "
            "would get one name; use $1 in it",
        ),
        (
            router("(.*)", "x$1", f"{IDENTITY}A->B.transforms.route.predicate = p\n"),
            "it has predicate, so it is applied to some records only",
        ),
        (router("(a{1,2})", "x$1", IDENTITY), "it has a comma, which separates rules"),
        (
            router("(.*)", "x$1", "replication.policy.class = com.example.Own\n"),
            "it sees the names of com.example.Own, which are not known here",
        ),
        (
            router("(.*)", "x$1", f"{IDENTITY}A->B.mirrorless.topics.rename = a -> b\n"),
            "mirrorless.topics.rename is set too; remove one of the two",
        ),
    ],
)
def test_a_router_that_no_rule_is_like_is_refused_in_one_line(tmp_path: Path, text: str, reason: str) -> None:
    assert errors(tmp_path, text) == [
        f"A->B.transforms=route: route (RegexRouter) cannot be read as mirrorless.topics.rename: {reason}; set "
        "A->B.mirrorless.topics.rename instead, which is applied before the replication policy"
    ]

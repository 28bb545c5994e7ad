"""Transforms are refused in one line, which has what each does."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

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

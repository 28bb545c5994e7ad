"""Settings on the page have no secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mirrorless.settings import load
from mirrorless.web.effective_settings import effective_settings

if TYPE_CHECKING:
    from pathlib import Path

FILE = """\
clusters = A, B
A.bootstrap.servers = a:1
B.bootstrap.servers = b:1
A.security.protocol = SASL_PLAINTEXT
A.sasl.mechanism = PLAIN
A.sasl.jaas.config = org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="hunter2";
A->B.enabled = true
A->B.topics = orders, payments
A->B.mirrorless.switch = http:https://user:hunter2@switch.example/path?key=hunter2
"""


def test_secrets_are_masked_and_what_is_set_is_marked(tmp_path: Path) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(FILE)
    found = effective_settings(load(str(file)))
    assert "hunter2" not in repr(found)
    flow, first, second = found
    rows = {row.key: row for row in flow.settings}
    assert (flow.kind, flow.name, first.name, second.name) == ("flow", "A->B", "A", "B")
    assert (rows["topics"].value, rows["topics"].is_default) == ("orders, payments", False)
    assert (rows["mirrorless.on.gap"].value, rows["mirrorless.on.gap"].is_default) == ("halt", True)
    assert rows["mirrorless.switch"].value == "http:https://***@switch.example/path?***"
    assert rows["tasks.max"].meaning
    assert {row.key: row.value for row in first.settings}["sasl.jaas.config"] == "***"

"""Whatever cannot be used is said in one line with file, key and value, and without secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mirrorless.errors import ConfigurationError
from mirrorless.settings import load
from mirrorless.settings.model import FLOW_KEYS

if TYPE_CHECKING:
    from pathlib import Path

SERVERS = "A.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\n"
OWN_KEYS = [key for key in FLOW_KEYS if key.startswith("mirrorless.")]
BASE = f"clusters = A, B\n{SERVERS}A->B.enabled = true\n"


def refusal(tmp_path: Path, text: str) -> ConfigurationError:
    path = tmp_path / "mm2.properties"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        load(path)
    assert caught.value.file == str(path)
    assert "\n" not in str(caught.value)
    return caught.value


NUMBER = "must be a whole number in the range of 32 bits"
FACTOR = "must be 1 or more, or -1 for the broker's default"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param(
            "clusters = A, B\nA.bootstrap.servers = a:1\nA->B.enabled = true\n",
            "B.bootstrap.servers: flow A->B needs it; name the brokers of B as host:port",
            id="no brokers",
        ),
        pytest.param(
            "clusters = A, B\nA.bootstrap.servers = ,\nB.bootstrap.servers = b:1\nA->B.enabled = true\n",
            "A.bootstrap.servers=,: flow A->B needs it; name the brokers of A as host:port",
            id="empty brokers",
        ),
        pytest.param(
            rf"{BASE}A->B.topics = fine, broken(",
            "A->B.topics=fine, broken(: pattern 'broken(' does not compile: "
            "missing ), unterminated subpattern at position 6",
            id="topics",
        ),
        pytest.param(
            f"{BASE}topics.exclude = +",
            "topics.exclude=+: pattern '+' does not compile: nothing to repeat at position 0",
            id="topics.exclude",
        ),
        pytest.param(
            f"{BASE}groups = a(?i)b",
            "groups=a(?i)b: pattern 'a(?i)b' does not compile: "
            "flags inside a pattern, (?i), are not supported at position 1; put them first, or write (?i:...)",
            id="groups",
        ),
        pytest.param(
            f"{BASE}A->B.groups.exclude = [a-z&&[^b]]",
            "A->B.groups.exclude=[a-z&&[^b]]: pattern '[a-z&&[^b]]' does not compile: "
            "Java's operations on character classes are not supported at position 4; "
            "write one class, or a lookahead (?!...)",
            id="groups.exclude",
        ),
        pytest.param(
            f"{BASE}use.defaults.from = Kafka",
            "use.defaults.from=Kafka: must be source or target",
            id="use.defaults.from",
        ),
        pytest.param(
            f"{BASE}mirrorless.acls.patterns = literal, any",
            "mirrorless.acls.patterns=literal, any: must be literal, prefixed, or both separated by a comma",
            id="mirrorless.acls.patterns",
        ),
        pytest.param(f"{BASE}tasks.max = many", f"tasks.max=many: {NUMBER}", id="tasks.max no number"),
        pytest.param(f"{BASE}tasks.max = 3000000000", f"tasks.max=3000000000: {NUMBER}", id="tasks.max too large"),
        pytest.param(f"{BASE}A->B.tasks.max = 0", "A->B.tasks.max=0: must be 1 or more", id="tasks.max 0"),
        pytest.param(f"{BASE}replication.factor = 1.5", f"replication.factor=1.5: {NUMBER}", id="factor no number"),
        pytest.param(f"{BASE}replication.factor = 0", f"replication.factor=0: {FACTOR}", id="factor 0"),
        pytest.param(f"{BASE}replication.factor = -2", f"replication.factor=-2: {FACTOR}", id="factor -2"),
        pytest.param(
            f"{BASE}B.offset.storage.partitions = 0", f"B.offset.storage.partitions=0: {FACTOR}", id="partitions"
        ),
        pytest.param(
            f"{BASE}offset.storage.replication.factor = x",
            f"offset.storage.replication.factor=x: {NUMBER}",
            id="storage factor",
        ),
        pytest.param(
            f"{BASE}refresh.topics.interval.seconds = 0",
            "refresh.topics.interval.seconds=0: must be 1 or more",
            id="interval",
        ),
        pytest.param(
            f"{BASE}emit.heartbeats.interval.seconds = -1",
            "emit.heartbeats.interval.seconds=-1: must be 1 or more; to disable it, set its .enabled to false",
            id="negative interval",
        ),
        pytest.param(
            f"{BASE}mirrorless.lease.seconds = 0",
            "mirrorless.lease.seconds=0: must be a number of seconds above 0",
            id="lease 0",
        ),
        pytest.param(
            f"{BASE}mirrorless.lease.seconds = nan",
            "mirrorless.lease.seconds=nan: must be a number of seconds above 0",
            id="lease nan",
        ),
        pytest.param(
            f"{BASE}mirrorless.lease.seconds = long",
            "mirrorless.lease.seconds=long: must be a number of seconds",
            id="lease no number",
        ),
        pytest.param(
            f"{BASE}refresh.topics.enabled = yes", "refresh.topics.enabled=yes: must be true or false", id="boolean"
        ),
        pytest.param(f"{BASE}B->A.enabled = on", "B->A.enabled=on: must be true or false", id="enabled"),
        pytest.param(
            f"{BASE}replication.policy.separator =",
            "replication.policy.separator=: must not be empty with DefaultReplicationPolicy, whose topic names would "
            "not show where the alias A ends; to keep topic names, set replication.policy.class to "
            "IdentityReplicationPolicy",
            id="empty separator",
        ),
        pytest.param(
            SERVERS, "clusters: is missing; list the aliases of the clusters, as in clusters = A, B", id="no clusters"
        ),
        pytest.param(
            f"clusters = ,\n{SERVERS}",
            "clusters=,: is empty; list the aliases of the clusters, as in clusters = A, B",
            id="empty clusters",
        ),
        pytest.param(
            f"clusters = A, B, A\n{SERVERS}",
            "clusters=A, B, A: names A twice; use a different alias for each cluster",
            id="alias twice",
        ),
        pytest.param(
            f"clusters = A, B\n{SERVERS}A->B.enabled = false",
            "A->B.enabled=false: no flow is enabled; set this one, or another, to true",
            id="no flow enabled",
        ),
        pytest.param(
            f"clusters = A, B\n{SERVERS}",
            "A->B.enabled: no flow is enabled; set this one, or another, to true",
            id="no flow",
        ),
        pytest.param(
            "clusters = A\nA.bootstrap.servers = a:1\n",
            "clusters=A: a flow needs two clusters; list both",
            id="one cluster",
        ),
        pytest.param(
            f"{BASE}mirrorless.on.gap = skip", "mirrorless.on.gap=skip: must be halt or continue", id="gap policy"
        ),
        pytest.param(f"{BASE}errors.tolerance = some", "errors.tolerance=some: must be none or all", id="tolerance"),
        pytest.param(
            f"{BASE}mirrorless.max.bytes.per.second = 1.5MB",
            "mirrorless.max.bytes.per.second=1.5MB: must be a whole number of bytes, 1 or more",
            id="bandwidth",
        ),
        pytest.param(
            f"{BASE}mirrorless.lease.second = 5",
            "mirrorless.lease.second=5: unknown setting; did you mean mirrorless.lease.seconds?",
            id="own key",
        ),
        pytest.param(
            f"{BASE}A -> B.mirrorless.leese.seconds = 5",
            "A->B.mirrorless.leese.seconds=5: unknown setting; did you mean mirrorless.lease.seconds?",
            id="own key of a flow",
        ),
        pytest.param(
            f"{BASE}mirrorless.x = 5",
            f"mirrorless.x=5: unknown setting; known: {', '.join(OWN_KEYS)}",
            id="own key like no other",
        ),
        pytest.param(
            f"{BASE}B->A.emit.heartbeats.enabled = yes",
            "B->A.emit.heartbeats.enabled=yes: must be true or false",
            id="of a pair that is not enabled",
        ),
        pytest.param(
            f"{BASE}A->B.source.cluster.alias = B",
            "A->B.source.cluster.alias=B: is the alias of another cluster; name A by an alias of its own",
            id="the alias of another cluster",
        ),
        pytest.param(
            f"{BASE}B.mirrorless.lease.seconds = 5",
            "B.mirrorless.lease.seconds=5: must be set for a flow, not for a cluster; write mirrorless.lease.seconds",
            id="own key of a cluster",
        ),
    ],
)
def test_one_line(tmp_path: Path, text: str, line: str) -> None:
    error = refusal(tmp_path, text)
    place = f"{tmp_path / 'mm2.properties'}{'' if error.line is None else f':{error.line}'}"
    assert str(error) == f"{place}: {line}"
    if error.line is not None:
        key = str(error.key).rpartition(".")[2]
        assert key in text.splitlines()[error.line - 1]


def test_a_value_with_a_line_break_stays_on_one_line(tmp_path: Path) -> None:
    assert r"tasks.max='1\n2': must" in str(refusal(tmp_path, rf"{BASE}tasks.max = 1\n2"))


@pytest.mark.parametrize(
    "key",
    ["mirrorless.password", "A.mirrorless.secret", "A->B.mirrorless.ssl.keystore.key"],
)
def test_a_secret_is_not_shown_even_where_its_key_is_wrong(tmp_path: Path, key: str) -> None:
    text = str(refusal(tmp_path, f"{BASE}{key} = swordfish"))

    assert f"{key}=***: " in text
    assert "swordfish" not in text

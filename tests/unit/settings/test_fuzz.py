"""Whatever is in a file, reading it ends with settings or with one line: never with a traceback.

`make fuzz` runs these for as long as it is told to (`MIRRORLESS_FUZZ_EXAMPLES`).
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import javaproperties
import pytest
import yaml
from click.testing import CliRunner
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from mirrorless.cli.config import group
from mirrorless.clusters import jaas, jks, pem
from mirrorless.clusters.client_settings import Role, check
from mirrorless.errors import ConfigurationError, MirrorlessError
from mirrorless.filters import replicated_topics
from mirrorless.settings import Settings, load
from mirrorless.settings.client_keys import COMMON_CLIENT_KEYS, CONSUMER_KEYS, PRODUCER_KEYS, SECURITY_KEYS
from mirrorless.settings.client_meanings import CLIENT_MEANINGS
from mirrorless.settings.converting import to_json, to_properties
from mirrorless.settings.explain import explain
from mirrorless.settings.load import understand
from mirrorless.settings.mirrormaker1 import location
from mirrorless.settings.model import FLOW_KEYS, WORKER_KEYS
from mirrorless.settings.patterns import compile_patterns, tidy_patterns
from mirrorless.settings.references import BUILT_IN
from mirrorless.settings.unsupported_keys import NAMES
from tests.support.understood import cases, files_of

if TYPE_CHECKING:
    from mirrorless.settings.reader import Understanding

pytestmark = pytest.mark.fuzz

EXAMPLES = int(os.environ.get("MIRRORLESS_FUZZ_EXAMPLES", "25"))
fuzzed = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))

BASE = {
    "clusters": "A, B",
    "A.bootstrap.servers": "a:9092",
    "B.bootstrap.servers": "b:9092",
    "A->B.enabled": "true",
}
SECRET_KEYS = ["ssl.key.password", "sasl.jaas.config", "ssl.keystore.password", "SASL.Jaas.Config", "sasl_jaas_config"]
SECRET_KEYS += ["sasl.jaas.confg", "ssl-key-pasword", "ssl.truststore.passwords"]
SECRET = "swordfish"  # noqa: S105 -- what must not come out
# A reference is shown where it cannot be resolved: it says where the secret is.
_IN_A_REFERENCE = re.compile(
    rf"\$\{{({'|'.join(BUILT_IN)}):[^}}]*{SECRET}[^}}]*\}}"
    # So is the name of a placeholder or provider that is a whole value.
    rf"|\$\{{[\w.-]*{SECRET}"
)

scopes = st.sampled_from(
    ["", "A.", "B.", "a.", "A->B.", "A -> B.", "B->A.", "A->C.", "A->A.", "->.", "A->", "A.consumer.", "B.producer."]
    + [f"A->B.{side}{role}" for side in ("", "source.", "target.") for role in ("consumer.", "producer.", "cluster.")]
)
bare = st.sampled_from(
    sorted(
        {*FLOW_KEYS, *WORKER_KEYS, *NAMES, *SECURITY_KEYS, *COMMON_CLIENT_KEYS, *CONSUMER_KEYS, *PRODUCER_KEYS}
        | {*CLIENT_MEANINGS, "clusters", "enabled", "bootstrap.servers", "topics.blacklist", "transforms"}
        | {"config.providers", "config.providers.x.class", "sync.group.offsets.interval.ms", "mirrorless.x"}
    )
)
words = st.sampled_from(
    [
        *[
            "",
            "true",
            "FALSE",
            "-1",
            "0",
            "2",
            "99999999999",
            "1e400",
            "nan",
            "*",
            "*.x",
            "a,b",
            '"',
            "'a'",
            "(",
            "[",
            "\\",
        ],
        *["SSL", "SASL_SSL", "SASL_PLAINTEXT", "PLAIN", "SCRAM-SHA-512", "OAUTHBEARER", "AWS_MSK_IAM", "PEM", "https"],
        *[
            "a:1",
            "[::1]:1",
            "a:1;b",
            "${env:HOME}",
            "${file:/etc/passwd:x}",
            "${x:y:z}",
            "${",
            "${a:}",
            "/",
            "/dev/null",
        ],
        *[
            "latest",
            "2026-01-31T12:00:00Z",
            "0001-01-01T00:00:00+23:00",
            "IdentityReplicationPolicy",
            "\u0663",
            "\x00",
            "\n",
        ],
        *[
            'x.PlainLoginModule required username="u" password="p";',
            "x.OAuthBearerLoginModule required clientId=a;",
            ";",
        ],
    ]
)
values = st.one_of(words, st.text(max_size=20), st.lists(words, max_size=4).map(",".join))
names = st.one_of(
    st.tuples(scopes, bare).map("".join),
    st.tuples(scopes, bare).map(lambda pair: "".join(pair).upper()),
    st.text(max_size=20),
)


ROLES: tuple[Role, ...] = ("admin", "consumer", "producer")


def use(found: Settings) -> None:
    """What happens with settings before the first connection."""
    for flow in found.flows:
        with contextlib.suppress(MirrorlessError):
            assert isinstance(replicated_topics(flow)("topic"), bool)
        for cluster in (flow.source, flow.target):
            for role in ROLES:
                with contextlib.suppress(MirrorlessError):
                    check(cluster, role=role)


def read_it(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_bytes(content)
        try:
            use(load(path))
        except MirrorlessError as error:
            assert "\n" not in str(error)  # noqa: PT017 -- there may be none
        understood = understand(path)
        assert (understood.settings is None) == bool(understood.errors)
        for line in (*understood.warnings, *understood.notes):
            assert "\n" not in line
        for arguments in ((), ("--json",)):
            result = CliRunner().invoke(group, ["check", *arguments, str(path)])
            assert isinstance(result.exception, SystemExit | None), result.exc_info
        json.loads(result.output)
        convert_it(path, understood)


def convert_it(path: Path, understood: Understanding) -> None:
    """What can be read is converted, or refused in one line, and the result is read again."""
    if understood.settings is None:
        return
    for convert in (to_properties, to_json):
        with contextlib.suppress(ConfigurationError):
            converted = convert(understood)
            again = path.with_name("again")
            again.write_text(converted.text, encoding="utf-8", errors="surrogatepass")
            assert convert(understand(again)).text == converted.text


@fuzzed
@given(st.binary(max_size=300))
def test_bytes(content: bytes) -> None:
    read_it(content)


@fuzzed
@given(st.text(max_size=300))
def test_text(content: str) -> None:
    read_it(content.encode("utf-8", "surrogatepass"))


@fuzzed
@given(st.text(alphabet="A B.->=:\\\n\t\f#!,;\"'*$[]{}/u01tsopic", max_size=200))
def test_text_that_looks_like_settings(content: str) -> None:
    read_it("".join(f"{key}={value}\n" for key, value in BASE.items()).encode() + content.encode())


@fuzzed
@given(st.dictionaries(names, values, max_size=12), st.booleans())
def test_settings_of_all_kinds(found: dict[str, str], with_base: bool) -> None:
    entries = (BASE if with_base else {}) | found
    read_it(javaproperties.dumps(entries, timestamp=False).encode("utf-8", "surrogatepass"))


@fuzzed
@given(st.sampled_from(sorted(SECURITY_KEYS)), values, st.dictionaries(st.sampled_from(sorted(SECURITY_KEYS)), values))
def test_security_settings(key: str, value: str, found: dict[str, str]) -> None:
    protocol = {"security.protocol": "SASL_SSL"}
    entries = BASE | {f"A.{name}": text for name, text in (protocol | found | {key: value}).items()}
    read_it(javaproperties.dumps(entries, timestamp=False).encode("utf-8", "surrogatepass"))


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | words | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)
CONNECTOR = {
    "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
    "source.cluster.alias": "A",
    "source.cluster.bootstrap.servers": "a:1",
    "target.cluster.bootstrap.servers": "b:1",
}


@fuzzed
@given(json_values)
def test_json(content: object) -> None:
    read_it(json.dumps(content).encode("utf-8", "surrogatepass"))


@fuzzed
@given(
    st.dictionaries(st.one_of(bare, st.sampled_from(sorted(CONNECTOR)), st.text(max_size=10)), json_values, max_size=6),
    st.sampled_from(["plain", "named", "list", "expanded"]),
)
def test_connectors(found: dict[str, Any], shape: str) -> None:
    config = CONNECTOR | found
    content: object = {"name": "n", "config": config}
    if shape == "plain":
        content = config
    elif shape == "list":
        content = [content, config]
    elif shape == "expanded":
        content = {"n": {"info": content}}
    read_it(json.dumps(content).encode("utf-8", "surrogatepass"))


@fuzzed
@given(st.dictionaries(st.one_of(bare, st.sampled_from(sorted(CONNECTOR))), values, max_size=8), st.text(max_size=60))
def test_a_connector_as_properties_and_its_worker(found: dict[str, str], worker: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("connector", "worker")]
        text = javaproperties.dumps(CONNECTOR | found, timestamp=False)
        paths[0].write_bytes(text.encode("utf-8", "surrogatepass"))
        paths[1].write_bytes(b"key.converter=x\n" + worker.encode("utf-8", "surrogatepass"))
        for files in (paths, paths[:1]):
            understood = understand(*files)
            assert (understood.settings is None) == bool(understood.errors)


CASES = {case.name: case for case in cases()}
DOCUMENTS = {
    name: next(path for path in files_of(case) if path.suffix in (".yaml", ".json")).read_text()
    for name, case in CASES.items()
    if not name.startswith(("properties-", "standalone-"))
}


@fuzzed
@given(st.sampled_from(sorted(DOCUMENTS)), st.data())
def test_a_document_with_a_part_changed(name: str, data: st.DataObject) -> None:
    document: Any = next(iter(yaml.safe_load_all(DOCUMENTS[name])))
    for _ in range(data.draw(st.integers(1, 3))):
        at = document
        while isinstance(at, dict | list) and at:
            key = data.draw(st.sampled_from(sorted(at, key=str) if isinstance(at, dict) else range(len(at))))
            if data.draw(st.booleans()) or not isinstance(at[key], dict | list):
                at[key] = data.draw(json_values | values)
                break
            at = at[key]
    text = json.dumps(document) if data.draw(st.booleans()) else yaml.safe_dump(document)
    read_it(text.encode("utf-8", "surrogatepass"))


@fuzzed
@given(st.sampled_from(sorted(DOCUMENTS)), st.data())
def test_a_document_with_lines_changed(name: str, data: st.DataObject) -> None:
    lines = DOCUMENTS[name].split("\n")
    at = data.draw(st.integers(0, len(lines) - 1))
    lines[at : at + data.draw(st.integers(0, 2))] = [
        data.draw(st.text(alphabet=" -:{}[]&*!|>'\"%@`#,?\nab", max_size=20))
    ]
    read_it("\n".join(lines).encode())


@fuzzed
@given(st.sampled_from(sorted(CASES)), st.data())
def test_no_secret_of_any_form_comes_out(name: str, data: st.DataObject) -> None:
    """A line that may hold a secret is never printed: wherever it is, and whatever is broken around it."""
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for file in files_of(CASES[name]):
            lines = file.read_text().split("\n")
            # Strimzi's resources name Secrets and their keys, which are shown.
            named = name.startswith("strimzi") and file.name != "secrets.yaml"
            holds = re.compile(r"(?i)jaas" if named else r"(?i)jaas|password|crt: ")
            secret = [at for at, line in enumerate(lines) if holds.search(line) and "passwordSecret" not in line]
            if secret:
                at = data.draw(st.sampled_from(secret))
                end = data.draw(st.sampled_from(["", '"', "'", ": x", "  # x", "\t", "]", "}", "*"]))
                head, sign, _ = lines[at].partition(data.draw(st.sampled_from([":", "=", " ", "assword"])))
                # A word on a line of its own is a key like any other.
                before = data.draw(words.filter(lambda word: "\n" not in word))
                lines[at] = f"{head}{sign} {before if data.draw(st.booleans()) else ''}{SECRET}{end}"
                assume(_IN_A_REFERENCE.search(lines[at]) is None)
                # In redpanda's files `${NAME}` is a variable of the environment.
                assume("redpanda" not in name or f"${{{SECRET}" not in lines[at])
            path = Path(folder) / file.name
            path.write_text("\n".join(lines), encoding="utf-8", errors="surrogatepass")
            paths.append(str(path))
        for arguments in (("check",), ("check", "--json"), ("convert",), ("convert", "--format", "json")):
            result = CliRunner().invoke(group, [*arguments, *paths])
            assert isinstance(result.exception, SystemExit | MirrorlessError | None), result.exc_info
            assert SECRET not in result.output + str(result.exception or "")
        assert SECRET not in repr(understand(*paths))


@fuzzed
@given(st.binary(max_size=100), st.binary(max_size=100), st.text(max_size=20))
def test_a_mirrormaker1(consumer: bytes, producer: bytes, include: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name, content in (("c", consumer), ("p", producer)):
            (Path(folder) / name).write_bytes(b"bootstrap.servers=a:1\n" + content)
        with contextlib.suppress(MirrorlessError, UnicodeEncodeError):
            use(load(location(consumer=f"{folder}/c", producer=f"{folder}/p", include=include)))


@fuzzed
@given(st.text(max_size=40))
def test_a_location(text: str) -> None:
    with contextlib.suppress(MirrorlessError):
        load(text)


@fuzzed
@given(st.text(max_size=40) | names)
def test_explain(key: str) -> None:
    with contextlib.suppress(MirrorlessError):
        assert explain(key).meaning


@fuzzed
@given(st.text(max_size=60) | st.lists(words).map(" ".join))
def test_a_login_configuration(text: str) -> None:
    with contextlib.suppress(ValueError):
        jaas.parse(text)


@fuzzed
@given(st.text(max_size=60))
def test_patterns(text: str) -> None:
    tidied, _ = tidy_patterns(text)
    assert tidy_patterns(tidied)[0] == tidied or '"' in text or "'" in text
    with contextlib.suppress(ValueError):
        compile_patterns([tidied])


@fuzzed
@given(st.binary(max_size=200), st.booleans(), st.text(max_size=5))
def test_a_jks_store(content: bytes, with_magic: bool, password: str) -> None:
    data = (jks.MAGIC + b"\0\0\0\2\0\0\0\1\0\0\0\1\0\0" if with_magic else b"") + content
    for secret in (None, password):
        with contextlib.suppress(ValueError):
            jks.read(data, password=secret, key_password=None, with_key=True)


@fuzzed
@given(st.text(max_size=200))
def test_pem_text(text: str) -> None:
    for content in (text, f"-----BEGIN PRIVATE KEY-----{text}-----END PRIVATE KEY-----"):
        with contextlib.suppress(ValueError):
            found = pem.read(content)
            if found.key is not None:
                pem.key_context("/dev/null", found.key, text)


@fuzzed
@given(st.sampled_from(SECRET_KEYS), scopes, values, values)
def test_no_secret_comes_out(key: str, scope: str, before: str, after: str) -> None:
    entries = BASE | {f"{scope}{key}": f"{before}{SECRET}{after}", "A.security.protocol": "SASL_SSL"}
    entries |= {"A.sasl.mechanism": "PLAIN"}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mm2.properties"
        path.write_bytes(javaproperties.dumps(entries, timestamp=False).encode("utf-8", "surrogatepass"))
        for arguments in ((), ("--json",)):
            assert SECRET not in CliRunner().invoke(group, ["check", *arguments, str(path)]).output
        assert SECRET not in repr(understand(path))

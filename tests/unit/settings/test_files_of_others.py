"""Constructs of public files that were misread once: read as meant, or refused in one line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest
from click.testing import CliRunner

from mirrorless.cli.config import group
from mirrorless.clusters.internal_topics import checkpoints_topic, offset_syncs_topic
from mirrorless.clusters.target_state import configs_topic
from mirrorless.errors import ConfigurationError
from mirrorless.policy import policy_for
from mirrorless.settings import load
from mirrorless.settings.load import understand
from mirrorless.settings.references import resolve

if TYPE_CHECKING:
    from pathlib import Path

    from mirrorless.settings.reader import Understanding

BASE: Final = "clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\n"
LOGIN: Final = 'A.sasl.jaas.config = x.ScramLoginModule required username="u" password="{}";\n'
CONNECTOR: Final = {
    "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
    "source.cluster.alias": "A",
    "target.cluster.alias": "B",
    "source.cluster.bootstrap.servers": "a:1",
    "target.cluster.bootstrap.servers": "b:1",
}
STRIMZI: Final = """kind: KafkaMirrorMaker2
metadata: {name: m}
spec:
  connectCluster: B
  clusters:
    - {alias: A, bootstrapServers: "a:1", tls: {trustedCertificates: [{secretName: ca, pattern: "*.crt"}]}}
    - {alias: B, bootstrapServers: "b:1"}
  mirrors:
    - sourceCluster: A
      targetCluster: B
      sourceConnector: {config: {topics: orders}}
      checkpointConnector: {}
"""
CA: Final = "---\nkind: Secret\nmetadata: {name: ca}\nstringData: {old.crt: OLD, new.crt: NEW, ca.p12: x}\n"


def read(folder: Path, text: str, name: str = "mm2.properties") -> Understanding:
    (folder / name).write_text(text)
    return understand(folder / name)


def said(folder: Path, understood: Understanding) -> str:
    lines = (*understood.warnings, *map(str, understood.errors))
    return "\n".join(lines).replace(f"{folder}/", "")


def missing(folder: Path, cases: dict[str, str]) -> list[str]:
    """Return what is not said about each text."""
    told = {text: said(folder, read(folder, text)) for text in cases}
    return [f"{text}\n-> {told[text]}\nlacks {line}" for text, line in cases.items() if line not in told[text]]


def test_each_is_reported_with_file_and_line(tmp_path: Path) -> None:
    assert not missing(
        tmp_path,
        {
            f"{BASE}topics.exclude = secret.*\ntopics.exclude = tmp.*\n": (
                "mm2.properties:6: topics.exclude=tmp.*: lines 5 and 6 set different values, and only the last has"
            ),
            f"{BASE}A->B.topics = x\nA -> B.topics = y\n": (
                "mm2.properties:6: A->B.topics=y: line 5 sets another value, which has no effect"
            ),
            f"{BASE}{LOGIN.format('a')}{LOGIN.format('b')}": (
                "mm2.properties:6: A.sasl.jaas.config=***: line 5 sets another value, which has no effect"
            ),
            f"{BASE}{LOGIN.format('${KAFKA_PASSWORD}')}": (
                "A.sasl.jaas.config=***: ${KAFKA_PASSWORD} names no config provider, so it is not replaced; write "
                "${env:KAFKA_PASSWORD} for"
            ),
            f"{BASE}{LOGIN.format('pa${ss}')}": "A.sasl.jaas.config=***: ${***} names no config provider",
            f"{BASE}A->B.topics = orders, ${{TOPICS}}\n": "${TOPICS} names no config provider",
            BASE.replace("a:1", "${BROKERS}"): "A.bootstrap.servers=${BROKERS}: ${BROKERS} names no config provider",
            f"{BASE}{LOGIN.format('${vault:x:y}')}": "A.sasl.jaas.config: config provider vault is not declared",
            f"{BASE}A.pwd = swordfish\n": "mm2.properties:5: A.pwd=***: is not known",
            f"{BASE}A.api.key = swordfish\n": "mm2.properties:5: A.api.key=***: is not known",
            f"{BASE}MM2_PASS = swordfish\n": "mm2.properties:5: MM2_PASS=***: is not known",
            f"{BASE}A.connection = swordfish\n": "mm2.properties:5: A.connection=***: is not known",
            f"{BASE}A->B.topics = orders, payments\\..*\n": (
                "mm2.properties:5: A->B.topics=orders, payments..*: a properties file reads \\. as a dot, which "
                "matches any character; write [.] for a dot"
            ),
            f"{BASE}{LOGIN.format('x')}A.sasl.mechanism = PLAIN\n": (
                "A.sasl.jaas.config: has no effect, because security.protocol is PLAINTEXT by default; set A.security"
            ),
            f"{BASE}groups = g\\d+\n": "mm2.properties:5: groups=gd+: a properties file reads \\d as d; write \\\\d",
        },
    )


def test_nothing_is_reported_where_nothing_differs(tmp_path: Path) -> None:
    texts = (
        f"{BASE}topics = x\ntopics = x\n",
        f"{BASE}topics.exclude = x\ntopics.exclude = x\n",
        f"{BASE}topics = orders\\\\..*, [\\-\\.]x, a[.]b\n",
        f"{BASE}source.cluster.alias = A\ntarget.cluster.alias = B\n",
    )
    told = [said(tmp_path, read(tmp_path, text)) for text in texts]

    assert told == [""] * len(texts)


def test_the_name_that_mirrormaker2_gives_the_source(tmp_path: Path) -> None:
    for lines in ("source.cluster.alias = site1\n", "A -> B.source.cluster.alias = site1\n"):
        understood = read(tmp_path, f"{BASE}A->B.topics = t\nA.client.id = c\n{lines}")
        assert understood.settings is not None
        flow = understood.settings.flow("site1->B")

        assert policy_for(flow).format_remote_topic(flow.source.alias, "t") == "site1.t"
        assert (flow.topics, flow.source.client["client.id"], flow.progress_alias) == (("t",), "c", "site1")
        # The worker keeps its own name.
        assert (flow.offset_storage_topic, flow.worker_alias) == ("mm2-offsets.A.internal", "A")
        assert configs_topic(flow).name == "mm2-configs.A.internal"
        assert checkpoints_topic(flow).name == "site1.checkpoints.internal"
        assert offset_syncs_topic(flow).name == "mm2-offset-syncs.B.internal"
        assert "is called site1 here" in said(tmp_path, understood)


@pytest.mark.parametrize("policy", ["", "replication.policy.class = x.IdentityReplicationPolicy\n"])
def test_an_empty_alias_keeps_names_and_finds_progress(tmp_path: Path, policy: str) -> None:
    policy = policy.replace("x.", "org.apache.kafka.connect.mirror.")
    understood = read(
        tmp_path,
        # A cluster that is called `source`, as in a widely copied file.
        BASE.replace("A", "source") + policy + "replication.policy.separator =\nsource.cluster.alias =\n",
    )
    assert understood.settings is not None
    flow = understood.settings.flow("source->B")

    assert policy_for(flow).format_remote_topic("source", "t") == "t"
    assert (flow.progress_alias, flow.offset_storage_topic) == ("", "mm2-offsets.source.internal")
    # As MirrorMaker 2 names them with an empty separator.
    assert checkpoints_topic(flow).name == "checkpointsinternal"
    assert offset_syncs_topic(flow).name == "mm2-offset-syncsBinternal"
    assert "mm2.properties:" in said(tmp_path, understood)
    assert "progress is read and written with an empty alias" in said(tmp_path, understood)


def test_names_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    both = f"{BASE}B->A.enabled = true\n"
    three = f"{BASE}C.bootstrap.servers = c:1\n".replace("A, B", "A, B, C")
    assert not missing(
        tmp_path,
        {
            f"{BASE}source.cluster.alias =\n": "names remote topics .t; name the source. To keep topic names without",
            f"{both}source.cluster.alias = x\n": "MirrorMaker 2 names the source of A->B and B->A by it; give each",
            f"{both}A->B.source.cluster.alias = x\n": "MirrorMaker 2 calls A so in A->B, and A in B->A; give each",
            f"{three}C->B.enabled = true\nA->B.source.cluster.alias = x\n": (
                "A->B and C->B have separate progress topics in MirrorMaker 2; give each"
            ),
            f"{BASE}source.cluster.alias = B\n": "is the alias of another cluster",
            f"{both}source.cluster.alias = B\n": "MirrorMaker 2 names the source of A->B and B->A by it; give each",
            f"{BASE}source.cluster.alias = x\ntarget.cluster.alias = x\n": "is the name of two clusters; name B by",
            f"{BASE}source.cluster.alias = x y\n": "must be one word without -> and commas",
        },
    )


def test_two_flows_into_one_kept_name(tmp_path: Path) -> None:
    both = "clusters = A, B, C\nA.bootstrap.servers=a:1\nB.bootstrap.servers=b:1\nC.bootstrap.servers=c:1\n"
    both += "A->C.enabled = true\nB->C.enabled = true\nreplication.policy.class = IdentityReplicationPolicy\n"
    line = "A->C and B->C keep topic names and select {}: a topic of both sources is one topic on C"
    cases = {
        both: line.format("topics by patterns"),
        f"{both}topics = orders\n": line.format("orders"),
        f"{both}A->C.topics = a.x, b.x\nB->C.topics = b[.].*\n": line.format("b.x"),
    }
    quiet = (
        f"{both}A->C.topics = orders\nB->C.topics = payments\n",
        f"{both}A->C.topics = orders\nB->C.topics.exclude = orders\n",
        f"{both}mirrorless.both.directions = skip\nsync.topic.configs.enabled = false\n",
        both.replace("Identity", "Default"),
    )

    assert not missing(tmp_path, cases)
    assert [said(tmp_path, read(tmp_path, text)) for text in quiet] == [""] * len(quiet)


def test_policies_that_only_keep_names(tmp_path: Path) -> None:
    names = (
        "io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy",
        "com.amazonaws.kafka.samples.CustomMM2ReplicationPolicy",
        "com.example.kafka.PrefixlessReplicationPolicy",
    )
    told = []
    for name in names:
        (tmp_path / "mm2.properties").write_text(f"{BASE}replication.policy.class = {name}\n")
        with pytest.raises(ConfigurationError) as raised:
            policy_for(load(tmp_path / "mm2.properties").flow("A->B"))
        told.append(str(raised.value))

    assert all("only keeps topic names; set IdentityReplicationPolicy" in line for line in told), told


def as_kubectl(text: str, **others: str) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "data": {"mm2.properties": text, **others}}, indent=1)


def test_a_config_map_with_the_file(tmp_path: Path) -> None:
    text = f"{BASE}topics = orders\nwibble = x\ngroups = a\ngroups = b\n"
    block = "".join(f"    {line}\n" for line in text.splitlines())
    other = '  log4j.properties: |\n    log4j.rootLogger=INFO\n  run.sh: "exec connect-mirror-maker.sh"\n'
    written = f"kind: ConfigMap\nmetadata: {{name: m}}\ndata:\n{other}  mm2.properties: |\n{block}"
    quoted = f"kind: ConfigMap\ndata:\n  mm2.properties: {json.dumps(text)}\n"
    listed = json.dumps({"kind": "List", "items": [json.loads(as_kubectl(text))]})
    found = {}
    for name, content in (("w", written), ("q", quoted), ("j", as_kubectl(text, other="x")), ("l", listed)):
        understood = read(tmp_path, content, f"{name}.yaml")
        topics = understood.settings and understood.settings.flow("A->B").topics
        found[name] = (topics, said(tmp_path, understood).splitlines())

    def lines(file: str, above: int = 0) -> list[str]:
        return [
            f"{file}:{above + 6}: wibble=***: is not known and has no effect",
            f"{file}:{above + 8}: groups=b: line {above + 7} sets another value, which has no effect; "
            "remove one of the two",
        ]

    # Where each line of the text has a line of the file, that is named.
    assert found == {
        "w": (("orders",), lines("w.yaml", above=7)),
        "q": (("orders",), lines("q.yaml#mm2.properties")),
        "j": (("orders",), lines("j.yaml#mm2.properties")),
        "l": (("orders",), lines("l.yaml#mm2.properties")),
    }
    assert "has 2 mm2.properties: mm2.properties, b; give one" in said(
        tmp_path, read(tmp_path, as_kubectl(BASE, b=BASE))
    )
    assert "no ConfigMap with an mm2.properties in its data" in said(tmp_path, read(tmp_path, as_kubectl("a = b")))


def test_the_json_of_msk_connect(tmp_path: Path) -> None:
    config = {"connectorName": "orders", "connectorConfiguration": CONNECTOR, "kafkaConnectVersion": "2.7.1"}
    understood = read(tmp_path, json.dumps(config), "c.json")

    assert understood.settings is not None
    assert understood.settings.flow("A->B").connector_name == "orders"


def test_what_a_connector_lacks_has_the_connector_s_name(tmp_path: Path) -> None:
    config = {key: value for key, value in CONNECTOR.items() if key != "source.cluster.bootstrap.servers"}
    commented = json.dumps({"name": "x", "config": CONNECTOR}).replace('"a:1"', '"a:1", "//": "a", "//": "b"')
    twice = json.dumps({"name": "x", "config": CONNECTOR}).replace('"a:1"', '"a:1", "topics": "a", "topics": "b"')

    assert read(tmp_path, commented, "c.json").errors == ()
    assert "c.json: source.cluster.bootstrap.servers: flow A->B needs it" in said(
        tmp_path, read(tmp_path, json.dumps({"name": "x", "config": config}), "c.json")
    )
    assert "c.json: topics: an object sets this key twice to different values" in said(
        tmp_path, read(tmp_path, twice, "c.json")
    )


def certificates(understood: Understanding) -> str:
    assert understood.settings is not None, understood.errors
    return understood.settings.flow("A->B").source.client["ssl.truststore.certificates"]


def test_all_certificates_that_match_are_trusted(tmp_path: Path) -> None:
    given = resolve(certificates(read(tmp_path, STRIMZI + CA, "m.yaml")), key="k")
    none = said(tmp_path, read(tmp_path, STRIMZI + CA.replace(".crt", ".pem"), "m.yaml"))
    folder = tmp_path / "ca"
    folder.mkdir()
    for name, text in (("b.crt", "B\n"), ("a.crt", "A\n"), ("user.key", "K"), ("..data", "x")):
        (folder / name).write_text(text)
    mounted = certificates(read(tmp_path, STRIMZI, "m.yaml"))

    assert given == "NEW\nOLD"
    assert none == ("m.yaml: spec.clusters[0].tls.trustedCertificates: Secret ca has no key that matches *.crt")
    assert mounted == "${directory:/etc/mirrorless/secrets/ca:*.crt}"
    assert resolve(f"${{directory:{folder}:*.crt}}", key="k") == "A\nB"
    with pytest.raises(ConfigurationError, match="has no file that matches"):
        resolve(f"${{directory:{folder}:*.pem}}", key="k")


def test_a_secret_that_is_not_here_is_a_warning_of_the_check(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text(STRIMZI)
    result = CliRunner().invoke(group, ["check", str(tmp_path / "m.yaml")])

    assert result.exit_code == 0, result.output
    assert "flow A->B\n" in result.output
    assert "warning: " in result.output
    assert "Secret ca: mount it at /etc/mirrorless/secrets/ca" in result.output


def test_a_connector_that_strimzi_does_not_run(tmp_path: Path) -> None:
    found: dict[str, Any] = {}
    for state in ("state: paused", "state: stopped", "pause: true"):
        text = STRIMZI.replace("sourceConnector: {", f"sourceConnector: {{{state}, ")
        understood = read(tmp_path, text.replace("Connector: {}", f"Connector: {{{state}}}") + CA, "m.yaml")
        assert understood.settings is not None
        flow = understood.settings.flow("A->B")
        found[state] = (flow.paused_by_file, flow.emit_checkpoints_enabled)
        field = state.replace(": ", "=")
        for line in (
            f"m.yaml:11: spec.mirrors[0].sourceConnector.{field}: as with Strimzi, A->B does not copy",
            f"m.yaml:12: spec.mirrors[0].checkpointConnector.{field}, so the connector is ignored",
        ):
            assert line in said(tmp_path, understood)

    assert found == dict.fromkeys(found, (True, False))


def test_what_is_no_configuration_of_a_flow(tmp_path: Path) -> None:
    assert not missing(
        tmp_path,
        {
            "bootstrap.servers = b:1\noffset.storage.topic = o\n": "is the file of a Connect worker; give those of its",
            "kind: ConfigMap\nmetadata:\n  name: {{ include }}-x: {{ y }}\n": "render it first",
        },
    )


def test_a_worker_on_the_source(tmp_path: Path) -> None:
    told = said(tmp_path, read(tmp_path, STRIMZI.replace("connectCluster: B", "connectCluster: A") + CA, "m.yaml"))

    assert "m.yaml:4: spec.connectCluster=A: Connect keeps its progress there, and progress is only read on the" in told


def test_settings_without_effect_do_not_stop_a_conversion(tmp_path: Path) -> None:
    config = CONNECTOR | {"producer.enable.idempotence": "true", "offset.storage.topic": "o"}
    texts = (f"{BASE}A->B.producer.linger.ms = 5\n", json.dumps({"name": "x", "config": config}))
    failed = []
    for text in texts:
        (tmp_path / "f").write_text(text)
        for form in ("properties", "json"):
            result = CliRunner().invoke(group, ["convert", "--format", form, str(tmp_path / "f")])
            if result.exit_code:
                failed.append(f"{form} of {text}: {result.exception}")

    assert failed == []


def test_settings_beside_the_connectors_of_a_mirror_are_reported(tmp_path: Path) -> None:
    """They were dropped silently: offsets of groups were not synced where a file asked for it there."""
    text = STRIMZI.replace(
        "      checkpointConnector", "      config: {sync.group.offsets.enabled: true}\n      checkpointConnector"
    )
    told = said(tmp_path, read(tmp_path, text, "m.yaml"))
    assert (
        "spec.mirrors[0].config: has no effect, nor with Strimzi: settings are read from the config of source" in told
    )


def test_a_resource_of_another_operator_is_refused_in_one_line(tmp_path: Path) -> None:
    text = "apiVersion: connect.example/v1\nkind: Connector\nspec:\n  config:\n    tasks.max: 2\n"
    understood = read(tmp_path, text, "m.yaml")
    assert [str(one).replace(f"{tmp_path}/", "") for one in understood.errors] == [
        "m.yaml: has no resource of kind KafkaMirrorMaker2 or KafkaConnector with connectors, and no ConfigMap with an "
        "mm2.properties in its data"
    ]


def test_what_samples_set_beside_a_connector_has_advice_that_fits(tmp_path: Path) -> None:
    understood = read(tmp_path, json.dumps(CONNECTOR | {"name": "m", "clusters": "A,B", "topics": "t"}), "m.json")
    assert "clusters" not in said(tmp_path, understood)
    assert any("is for dedicated mode; connectors have one source and one target" in note for note in understood.notes)
    assert not missing(
        tmp_path,
        {
            f"{BASE}max.tasks = 4\n": "max.tasks=4: is not known and has no effect; did you mean tasks.max?",
            f"{BASE}producer.linger.ms = 5\n": "nor in MirrorMaker 2; write B.producer.linger.ms",
            f"{BASE}consumer.fetch.min.bytes = 5\n": "nor in MirrorMaker 2; write A.consumer.fetch.min.bytes",
        },
    )

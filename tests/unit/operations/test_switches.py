"""Switches: what they change, that they may be thrown again, and what a dry call notices."""

from __future__ import annotations

import fcntl
import http.server
import json
import threading
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from moto import mock_aws

from mirrorless.errors import AwsError, MirrorlessError, OperationError
from mirrorless.operation_log.records import OperationKind, OperationState, Request
from mirrorless.operations import switches
from mirrorless.operations.switches import document, throw
from mirrorless.settings import Cluster

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SERVERS = "b-1.example.org:9098,b-2.example.org:9098"
REQUEST = Request(kind=OperationKind.SWITCHOVER, source="a", target="b")


def said(*, dry_run: bool = False, number: int = 7) -> dict[str, Any]:
    operation = OperationState(id="1", request=REQUEST, created_ms=1, number=number)
    return document(operation, Cluster(alias="b", bootstrap_servers=SERVERS), dry_run=dry_run)


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    with mock_aws():
        yield


@pytest.mark.usefixtures("aws")
def test_a_parameter_gets_the_bootstrap_servers() -> None:
    ssm = boto3.client("ssm")
    ssm.put_parameter(Name="/kafka", Value="old:9092", Type="String")
    throw("ssm:/kafka", said(dry_run=True))
    assert ssm.get_parameter(Name="/kafka")["Parameter"]["Value"] == "old:9092"
    for _ in range(2):
        throw("ssm:/kafka", said())
        assert ssm.get_parameter(Name="/kafka")["Parameter"]["Value"] == SERVERS


@pytest.mark.usefixtures("aws")
def test_a_parameter_that_does_not_exist_is_noticed_by_a_dry_call() -> None:
    with pytest.raises(AwsError, match="switch ssm:/kafka: ssm answered ParameterNotFound"):
        throw("ssm:/kafka", said(dry_run=True))


@pytest.mark.usefixtures("aws")
def test_a_name_points_to_the_first_server() -> None:
    route53 = boto3.client("route53")
    zone = route53.create_hosted_zone(Name="example.org", CallerReference="1")["HostedZone"]["Id"].rpartition("/")[2]

    def names() -> dict[str, str]:
        found = route53.list_resource_record_sets(HostedZoneId=zone)["ResourceRecordSets"]
        return {one["Name"]: one["ResourceRecords"][0]["Value"] for one in found if one["Type"] == "CNAME"}

    throw(f"route53:{zone}/kafka.example.org", said(dry_run=True))
    assert names() == {}
    for _ in range(2):
        throw(f"route53:{zone}/kafka.example.org", said())
        assert names() == {"kafka.example.org.": "b-1.example.org"}


def test_a_late_operation_does_not_replace_what_a_later_one_wrote(tmp_path: Path) -> None:
    file = tmp_path / "bootstrap"
    throw(f"file:{file}", said(number=8))
    file.write_text("of operation 8\n")
    with pytest.raises(OperationError, match="a later operation has thrown it"):
        throw(f"file:{file}", said(number=7))
    assert file.read_text() == "of operation 8\n"
    throw(f"file:{file}", said(number=9))
    assert file.read_text() == f"{SERVERS}\n"


def test_a_file_that_a_suspended_process_is_replacing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(switches, "_LOCK_S", 0.0)
    file = tmp_path / "bootstrap"
    with (tmp_path / ".bootstrap.operation").open("w") as beside:
        fcntl.flock(beside, fcntl.LOCK_EX)
        with pytest.raises(OperationError, match="end that process"):
            throw(f"file:{file}", said())
    assert not file.exists()


@pytest.mark.usefixtures("aws")
def test_a_name_is_changed_only_if_it_is_as_it_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Route 53 refuses a batch that deletes a record with other values (moto does not)."""
    route53 = boto3.client("route53")
    zone = route53.create_hosted_zone(Name="example.org", CallerReference="1")["HostedZone"]["Id"].rpartition("/")[2]
    sent: list[list[tuple[str, str]]] = []

    def note(params: dict[str, Any], **_: object) -> None:
        changes = params["ChangeBatch"]["Changes"]
        records = [(one["Action"], one["ResourceRecordSet"]["ResourceRecords"][0]["Value"]) for one in changes]
        sent.append(records)

    route53.meta.events.register("provide-client-params.route53.ChangeResourceRecordSets", note)
    monkeypatch.setattr(switches, "client", lambda *_, **__: nullcontext(route53))
    switch = f"route53:{zone}/kafka.example.org"
    throw(switch, said())
    operation = OperationState(id="2", request=REQUEST, created_ms=1, number=8)
    throw(switch, document(operation, Cluster(alias="a", bootstrap_servers="a-1.example.org:9098"), dry_run=False))
    first, second = "b-1.example.org", "a-1.example.org"
    assert sent == [[("CREATE", first)], [("DELETE", first), ("CREATE", second)]]


def test_a_file_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "bootstrap"
    file.write_text("old:9092\n")
    file.chmod(0o640)
    throw(f"file:{file}", said(dry_run=True))
    assert file.read_text() == "old:9092\n"
    throw(f"file:{file}", said())
    assert file.read_text() == f"{SERVERS}\n"
    assert file.stat().st_mode & 0o777 == 0o640
    assert {path.name for path in tmp_path.iterdir()} == {"bootstrap", ".bootstrap.operation"}


def test_a_file_that_cannot_be_written_is_noticed_by_a_dry_call(tmp_path: Path) -> None:
    with pytest.raises(OperationError, match=r"switch file:.*: No such file or directory"):
        throw(f"file:{tmp_path}/missing/bootstrap", said(dry_run=True))


@contextmanager
def server(status: int) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    heard: list[dict[str, Any]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.server_port}/switch", heard
        finally:
            listening.shutdown()
            thread.join()


def test_a_url_gets_the_operation() -> None:
    with server(204) as (url, heard):
        throw(url, said(dry_run=True))
        throw(f"http:{url}", said())
    assert [one["dry_run"] for one in heard] == [True, False]
    assert heard[1] == said()
    assert heard[1]["to"] == "b"


def test_a_url_that_refuses_is_an_error() -> None:
    with server(500) as (url, _), pytest.raises(OperationError, match=r"switch http:http://.*: Internal Server Error"):
        throw(url, said())


def test_a_command_gets_a_word_and_the_operation(tmp_path: Path) -> None:
    command = tmp_path / "switch"
    command.write_text(f'#!/bin/sh\necho "$1" >> {tmp_path}/words\ncat > {tmp_path}/document\n')
    command.chmod(0o755)
    throw(f"command:{command}", said(dry_run=True))
    throw(f"command:{command}", said())
    assert (tmp_path / "words").read_text().split() == ["check", "switch"]
    assert json.loads((tmp_path / "document").read_text()) == said()


def test_a_command_that_fails_is_one_line(tmp_path: Path) -> None:
    command = tmp_path / "switch"
    command.write_text("#!/bin/sh\necho no such environment >&2\nexit 3\n")
    command.chmod(0o755)
    with pytest.raises(MirrorlessError, match="switch switch ended with status 3: no such environment"):
        throw(f"command:{command}", said())
    with pytest.raises(MirrorlessError, match="cannot be run: No such file"):
        throw(f"command:{tmp_path}/missing", said())

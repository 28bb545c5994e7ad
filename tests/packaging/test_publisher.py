"""The publisher puts what jobs need into the bucket and answers CloudFormation, whatever happens."""

from __future__ import annotations

import importlib.util
import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from tests.support.aws import aws_server
from tests.support.template import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import ModuleType

BUCKET = "artifacts"


@dataclass
class CloudFormation:
    """Keeps the answers that are put to its address."""

    url: str
    answers: list[dict[str, Any]] = field(default_factory=list)

    def event(self, kind: str, bucket: str = BUCKET, files: str = "environment.tar.gz", **more: str) -> dict[str, Any]:
        """Return a request as CloudFormation makes it."""
        return {
            "RequestType": kind,
            "ResponseURL": self.url,
            "StackId": "arn:stack",
            "RequestId": "r-1",
            "LogicalResourceId": "PythonEnvironment",
            "ResourceProperties": {"ServiceToken": "arn:function", "Bucket": bucket, "Files": files, "Revision": "1"},
            **more,
        }


@contextmanager
def listening() -> Iterator[CloudFormation]:
    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            told.answers.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the library's name
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    told = CloudFormation(f"http://127.0.0.1:{server.server_port}/answer")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield told
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def cloudformation() -> Iterator[CloudFormation]:
    with listening() as told:
        yield told


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with aws_server() as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        client = boto3.client("s3")
        client.create_bucket(Bucket=BUCKET)
        yield client


class Context:
    log_group_name = "/mirrorless/test/publisher"


def publisher(folder: Path, content: bytes) -> ModuleType:
    """Return the function as it is deployed: its file, and the environment beside it."""
    folder.mkdir()
    (folder / "environment.tar.gz").write_bytes(content)
    (folder / "app.py").write_bytes((ROOT / "infra" / "publisher" / "app.py").read_bytes())
    spec = importlib.util.spec_from_file_location(f"publisher_{folder.name}", folder / "app.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def keys(s3: Any) -> list[str]:  # noqa: ANN401 -- boto3's client
    return [one["Key"] for one in s3.list_objects_v2(Bucket=BUCKET).get("Contents", [])]


def test_an_environment_is_there_from_the_first_deployment_to_the_last(
    s3: Any,  # noqa: ANN401
    cloudformation: CloudFormation,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    old, new = publisher(tmp_path / "old", b"old environment"), publisher(tmp_path / "new", b"new environment")

    old.handler(cloudformation.event("Create"), Context())
    first = cloudformation.answers[-1]
    assert first["Status"] == "SUCCESS"
    (key,) = keys(s3)
    assert first["Data"]["Location"] == f"s3://{BUCKET}/{key}"
    assert key.endswith("/environment.tar.gz")
    assert (first["StackId"], first["RequestId"], first["LogicalResourceId"]) == (
        "arn:stack",
        "r-1",
        "PythonEnvironment",
    )
    assert s3.get_object(Bucket=BUCKET, Key=key)["Body"].read() == b"old environment"

    # However old it is: what counts is since when it is replaced.
    much_later = SimpleNamespace(now=lambda tz: datetime.now(tz) + timedelta(days=13))
    monkeypatch.setattr(new, "datetime", much_later)
    new.handler(cloudformation.event("Update", PhysicalResourceId=first["PhysicalResourceId"]), Context())
    second = cloudformation.answers[-1]
    # With another id CloudFormation would have the first one's file removed, which a run under way still needs.
    assert second["PhysicalResourceId"] == first["PhysicalResourceId"]
    assert second["Data"]["Location"] != first["Data"]["Location"]
    assert len(keys(s3)) == 2

    later = SimpleNamespace(now=lambda tz: datetime.now(tz) + timedelta(days=15))
    monkeypatch.setattr(new, "datetime", later)
    new.handler(cloudformation.event("Update", PhysicalResourceId=first["PhysicalResourceId"]), Context())
    assert [f"s3://{BUCKET}/{one}" for one in keys(s3)] == [second["Data"]["Location"]]
    s3.put_object(Bucket=BUCKET, Key="verify/report.json", Body=b"")
    new.handler(cloudformation.event("Delete", PhysicalResourceId=first["PhysicalResourceId"]), Context())
    assert cloudformation.answers[-1]["Status"] == "SUCCESS"
    assert keys(s3) == ["verify/report.json"]


def test_jars_are_published_with_their_names_and_go_together(
    s3: Any,  # noqa: ANN401
    cloudformation: CloudFormation,
    tmp_path: Path,
) -> None:
    old, new = publisher(tmp_path / "before", b"environment"), publisher(tmp_path / "after", b"environment")
    for folder, content in (("before", b"2"), ("after", b"3")):
        (tmp_path / folder / "one.jar").write_bytes(b"1")
        (tmp_path / folder / "two.jar").write_bytes(content)

    old.handler(cloudformation.event("Create", files="*.jar"), Context())
    first = cloudformation.answers[-1]
    locations = first["Data"]["Location"].split(",")
    assert [one.rsplit("/", 1)[1] for one in locations] == ["one.jar", "two.jar"]
    assert sorted(keys(s3)) == [one.removeprefix(f"s3://{BUCKET}/") for one in locations]

    new.handler(
        cloudformation.event("Update", files="*.jar", PhysicalResourceId=first["PhysicalResourceId"]), Context()
    )
    second = cloudformation.answers[-1]
    # The jar that did not change is there still, under the new key.
    later = [one.removeprefix(f"s3://{BUCKET}/") for one in second["Data"]["Location"].split(",")]
    assert len(later) == 2
    assert set(later) < set(keys(s3))

    old.handler(cloudformation.event("Create"), Context())
    new.handler(
        cloudformation.event("Delete", files="*.jar", PhysicalResourceId=second["PhysicalResourceId"]), Context()
    )
    assert [one.rsplit("/", 1)[1] for one in keys(s3)] == ["environment.tar.gz"]


def test_nothing_to_publish_is_a_failure(cloudformation: CloudFormation, s3: Any, tmp_path: Path) -> None:  # noqa: ANN401
    assert s3 is not None
    publisher(tmp_path / "empty", b"").handler(cloudformation.event("Create", files="*.jar"), Context())
    assert cloudformation.answers[-1]["Status"] == "FAILED"
    assert cloudformation.answers[-1]["PhysicalResourceId"] == "PythonEnvironment"


def test_the_same_environment_keeps_its_key(s3: Any, cloudformation: CloudFormation, tmp_path: Path) -> None:  # noqa: ANN401
    module = publisher(tmp_path / "same", b"environment")
    module.handler(cloudformation.event("Create"), Context())
    module.handler(
        cloudformation.event("Update", PhysicalResourceId=cloudformation.answers[0]["PhysicalResourceId"]), Context()
    )
    assert cloudformation.answers[0]["Data"] == cloudformation.answers[1]["Data"]


def test_a_failure_is_told_and_what_failed_can_be_deleted(
    s3: Any,  # noqa: ANN401
    cloudformation: CloudFormation,
    tmp_path: Path,
) -> None:
    module = publisher(tmp_path / "failing", b"environment")
    module.handler(cloudformation.event("Create", bucket="no-such-bucket"), Context())
    failed = cloudformation.answers[-1]
    assert failed["Status"] == "FAILED"
    assert "NoSuchBucket" in failed["Reason"]
    assert Context.log_group_name in failed["Reason"]
    module.handler(
        cloudformation.event("Delete", bucket="no-such-bucket", PhysicalResourceId=failed["PhysicalResourceId"]),
        Context(),
    )
    assert cloudformation.answers[-1]["Status"] == "SUCCESS"

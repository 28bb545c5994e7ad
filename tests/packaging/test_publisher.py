"""The publisher copies what jobs need into the bucket and answers CloudFormation, whether it succeeds or fails."""

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

    def event(self, kind: str, bucket: str = BUCKET, **more: str) -> dict[str, Any]:
        """Return a request as CloudFormation makes it."""
        return {
            "RequestType": kind,
            "ResponseURL": self.url,
            "StackId": "arn:stack",
            "RequestId": "r-1",
            "LogicalResourceId": "Release",
            "ResourceProperties": {"ServiceToken": "arn:function", "Bucket": bucket, "Revision": "1"},
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
    """Return the function as it is deployed: its file, and the release beside it."""
    release = folder / "release"
    release.mkdir(parents=True)
    (release / "environment.tar.gz").write_bytes(content)
    for name in ("partition_copy.py", "verify_copy.py", "one.jar", "two.jar"):
        (release / name).write_text(name)
    (folder / "app.py").write_bytes((ROOT / "infra" / "publisher" / "app.py").read_bytes())
    spec = importlib.util.spec_from_file_location(f"publisher_{folder.name}", folder / "app.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def keys(s3: Any) -> list[str]:  # noqa: ANN401 -- boto3's client
    return [one["Key"] for one in s3.list_objects_v2(Bucket=BUCKET).get("Contents", [])]


def test_scripts_environment_and_jars_are_published_together_under_their_names(
    s3: Any,  # noqa: ANN401
    cloudformation: CloudFormation,
    tmp_path: Path,
) -> None:
    publisher(tmp_path / "one", b"environment").handler(cloudformation.event("Create"), Context())
    answer = cloudformation.answers[-1]
    assert answer["Status"] == "SUCCESS"
    assert (answer["StackId"], answer["RequestId"], answer["LogicalResourceId"]) == ("arn:stack", "r-1", "Release")
    data = answer["Data"]
    folder = f"s3://{BUCKET}/releases/{data['Release']}"
    assert data == {
        "Release": data["Release"],
        "PythonEnvironment": f"{folder}/environment.tar.gz",
        "PartitionCopy": f"{folder}/partition_copy.py",
        "VerifyCopy": f"{folder}/verify_copy.py",
        "KafkaJars": f"{folder}/one.jar,{folder}/two.jar",
    }
    named = {one for value in data.values() for one in value.split(",") if one.startswith("s3:")}
    assert {f"s3://{BUCKET}/{key}" for key in keys(s3)} == named


def test_a_release_is_there_until_two_weeks_after_the_next(
    s3: Any,  # noqa: ANN401
    cloudformation: CloudFormation,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    old, new = publisher(tmp_path / "old", b"old environment"), publisher(tmp_path / "new", b"new environment")
    old.handler(cloudformation.event("Create"), Context())
    first = cloudformation.answers[-1]

    # However old it is: what counts is since when it is replaced.
    much_later = SimpleNamespace(now=lambda tz: datetime.now(tz) + timedelta(days=13))
    monkeypatch.setattr(new, "datetime", much_later)
    new.handler(cloudformation.event("Update", PhysicalResourceId=first["PhysicalResourceId"]), Context())
    second = cloudformation.answers[-1]
    # With another id CloudFormation would have the first one's files removed, which a run under way still needs.
    assert second["PhysicalResourceId"] == first["PhysicalResourceId"]
    assert second["Data"]["Release"] != first["Data"]["Release"]
    assert len(keys(s3)) == 10

    later = SimpleNamespace(now=lambda tz: datetime.now(tz) + timedelta(days=15))
    monkeypatch.setattr(new, "datetime", later)
    new.handler(cloudformation.event("Update", PhysicalResourceId=first["PhysicalResourceId"]), Context())
    assert {key.split("/")[1] for key in keys(s3)} == {second["Data"]["Release"]}
    s3.put_object(Bucket=BUCKET, Key="verify/report.json", Body=b"")
    new.handler(cloudformation.event("Delete", PhysicalResourceId=first["PhysicalResourceId"]), Context())
    assert cloudformation.answers[-1]["Status"] == "SUCCESS"
    assert keys(s3) == ["verify/report.json"]


def test_the_same_files_are_the_same_release(s3: Any, cloudformation: CloudFormation, tmp_path: Path) -> None:  # noqa: ANN401
    for name in ("same", "again"):
        publisher(tmp_path / name, b"environment").handler(cloudformation.event("Create"), Context())
    assert cloudformation.answers[0]["Data"] == cloudformation.answers[1]["Data"]
    changed = publisher(tmp_path / "changed", b"environment")
    (tmp_path / "changed" / "release" / "partition_copy.py").write_text("another")
    changed.handler(cloudformation.event("Create"), Context())
    assert cloudformation.answers[2]["Data"]["Release"] != cloudformation.answers[0]["Data"]["Release"]


def test_a_failure_is_reported_and_what_failed_can_be_deleted(
    s3: Any,  # noqa: ANN401
    cloudformation: CloudFormation,
    tmp_path: Path,
) -> None:
    module = publisher(tmp_path / "failing", b"environment")
    module.handler(cloudformation.event("Create", bucket="no-such-bucket"), Context())
    failed = cloudformation.answers[-1]
    assert failed["Status"] == "FAILED"
    assert failed["PhysicalResourceId"] == "Release"
    assert "NoSuchBucket" in failed["Reason"]
    assert Context.log_group_name in failed["Reason"]
    module.handler(
        cloudformation.event("Delete", bucket="no-such-bucket", PhysicalResourceId=failed["PhysicalResourceId"]),
        Context(),
    )
    assert cloudformation.answers[-1]["Status"] == "SUCCESS"

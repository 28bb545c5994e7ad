"""The publisher copies what jobs need into the bucket and answers CloudFormation, whether it succeeds or fails."""

from __future__ import annotations

import importlib.util
import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta, tzinfo
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from moto.core.models import DEFAULT_ACCOUNT_ID

from tests.support.aws import aws_server
from tests.support.template import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import ModuleType

BUCKET = "artifacts"
LAYER = f"arn:aws:lambda:us-east-1:{DEFAULT_ACCOUNT_ID}:layer:mirrorless-shared-library"


@dataclass
class CloudFormation:
    """Keeps the answers that are put to its address."""

    url: str
    layer: int = 1
    answers: list[dict[str, Any]] = field(default_factory=list)

    def event(self, kind: str, bucket: str = BUCKET, **more: str) -> dict[str, Any]:
        """Return a request as CloudFormation makes it."""
        return {
            "RequestType": kind,
            "ResponseURL": self.url,
            "StackId": "arn:stack",
            "RequestId": "r-1",
            "LogicalResourceId": "Release",
            "ResourceProperties": {
                "ServiceToken": "arn:function",
                "Bucket": bucket,
                "Library": f"{LAYER}:{self.layer}",
                "Revision": "1",
            },
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
        boto3.client("lambda").publish_layer_version(LayerName="mirrorless-shared-library", Content={"ZipFile": b"x"})
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
    later(new, monkeypatch, days=13)
    new.handler(cloudformation.event("Update", PhysicalResourceId=first["PhysicalResourceId"]), Context())
    second = cloudformation.answers[-1]
    # With another id CloudFormation would have the first one's files removed, which a run under way still needs.
    assert second["PhysicalResourceId"] == first["PhysicalResourceId"]
    assert second["Data"]["Release"] != first["Data"]["Release"]
    assert len(keys(s3)) == 10

    later(new, monkeypatch, days=15)
    new.handler(cloudformation.event("Update", PhysicalResourceId=first["PhysicalResourceId"]), Context())
    assert {key.split("/")[1] for key in keys(s3)} == {second["Data"]["Release"]}
    s3.put_object(Bucket=BUCKET, Key="verify/report.json", Body=b"")
    new.handler(cloudformation.event("Delete", PhysicalResourceId=first["PhysicalResourceId"]), Context())
    assert cloudformation.answers[-1]["Status"] == "SUCCESS"
    assert keys(s3) == ["verify/report.json"]


def later(module: ModuleType, monkeypatch: pytest.MonkeyPatch, *, days: int) -> None:
    """Let so many days pass for a publisher."""

    def now(tz: tzinfo) -> datetime:
        return datetime.now(tz) + timedelta(days=days)

    monkeypatch.setattr(module, "datetime", SimpleNamespace(now=now, fromisoformat=datetime.fromisoformat))


def test_a_release_is_there_as_long_as_a_flow_names_it(
    s3: Any,  # noqa: ANN401
    cloudformation: CloudFormation,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    old, new = publisher(tmp_path / "old", b"old environment"), publisher(tmp_path / "new", b"new environment")
    old.handler(cloudformation.event("Create"), Context())
    first = cloudformation.answers[-1]["Data"]
    glue = boto3.client("glue")
    glue.create_job(
        Name="orders-copy", Role="role", Command={"Name": "gluestreaming", "ScriptLocation": first["PartitionCopy"]}
    )
    later(new, monkeypatch, days=100)
    new.handler(cloudformation.event("Update", PhysicalResourceId="Release"), Context())
    second = cloudformation.answers[-1]["Data"]
    new.handler(cloudformation.event("Update", PhysicalResourceId="Release"), Context())
    assert {key.split("/")[1] for key in keys(s3)} == {first["Release"], second["Release"]}

    # The shared stack is not deleted under a flow.
    new.handler(cloudformation.event("Delete", PhysicalResourceId="Release"), Context())
    assert cloudformation.answers[-1]["Status"] == "FAILED"
    reason = f"jobs of other stacks use releases of {BUCKET}: orders-copy"
    assert cloudformation.answers[-1]["Reason"].startswith(reason)
    assert len(keys(s3)) == 10

    glue.delete_job(JobName="orders-copy")
    new.handler(cloudformation.event("Update", PhysicalResourceId="Release"), Context())
    assert {key.split("/")[1] for key in keys(s3)} == {second["Release"]}


def test_a_roll_back_brings_the_release_before(s3: Any, cloudformation: CloudFormation, tmp_path: Path) -> None:  # noqa: ANN401
    old, new = publisher(tmp_path / "old", b"old environment"), publisher(tmp_path / "new", b"new environment")
    for module in (old, new, old):
        module.handler(cloudformation.event("Update", PhysicalResourceId="Release"), Context())
    first, second, again = (one["Data"] for one in cloudformation.answers)
    assert again == first != second
    assert {key.split("/")[1] for key in keys(s3)} == {first["Release"], second["Release"]}


def test_a_version_of_the_layer_is_there_as_long_as_a_function_has_it(
    s3: Any,  # noqa: ANN401 -- with the layer
    cloudformation: CloudFormation,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert s3
    functions = boto3.client("lambda")
    for content in (b"y", b"z"):
        functions.publish_layer_version(LayerName="mirrorless-shared-library", Content={"ZipFile": content})
    functions.publish_layer_version(LayerName="of-somebody-else", Content={"ZipFile": b"x"})
    trust = '{"Version": "2012-10-17", "Statement": []}'
    role = boto3.client("iam").create_role(RoleName="role", AssumeRolePolicyDocument=trust)["Role"]["Arn"]
    functions.create_function(
        FunctionName="orders",
        Runtime="python3.13",
        Handler="app.handler",
        Role=role,
        Code={"ZipFile": b"x"},
        Layers=[f"{LAYER}:1"],
    )
    cloudformation.layer = 3

    def versions() -> set[int]:
        listed = functions.list_layer_versions(LayerName="mirrorless-shared-library")["LayerVersions"]
        return {one["Version"] for one in listed}

    one = publisher(tmp_path / "one", b"environment")
    one.handler(cloudformation.event("Create"), Context())
    assert versions() == {1, 2, 3}  # of today
    later(one, monkeypatch, days=15)
    one.handler(cloudformation.event("Update", PhysicalResourceId="Release"), Context())
    assert cloudformation.answers[-1]["Status"] == "SUCCESS", cloudformation.answers[-1]
    assert versions() == {1, 3}
    functions.delete_function(FunctionName="orders")
    one.handler(cloudformation.event("Update", PhysicalResourceId="Release"), Context())
    assert versions() == {3}
    assert functions.list_layer_versions(LayerName="of-somebody-else")["LayerVersions"]


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

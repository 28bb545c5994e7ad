"""What `sam deploy` uploads by itself is all that the stacks need from S3."""

from __future__ import annotations

import tomllib
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final

import boto3
import pytest

from tests.support.aws import aws_server
from tests.support.template import ROOT, TEMPLATE, Stack, read

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator
    from pathlib import Path

BUCKET: Final = "deploy"
PREFIX: Final = "mirrorless-dev"
pytestmark = pytest.mark.timeout(600)  # a whole build may stand before the first of them


@pytest.fixture
def uploads() -> Iterator[dict[str, str]]:
    """Return what a client has to be told to talk to an S3 of its own."""
    with aws_server() as environment:
        yield environment


def locations(template: dict[str, Any]) -> list[str]:
    """Return every place from which a template's resources take a file."""
    found = []
    for resource in template["Resources"].values():
        properties = resource["Properties"]
        found += [properties[name] for name in ("CodeUri", "ContentUri", "Location") if name in properties]
        if resource["Type"] == "AWS::Glue::Job":
            found.append(properties["Command"]["ScriptLocation"])
    return found


def test_everything_that_a_stack_takes_is_uploaded(
    built: Path,
    tool: Callable[..., subprocess.CompletedProcess[str]],
    uploads: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in uploads.items():
        monkeypatch.setenv(name, value)
    s3 = boto3.client("s3")
    s3.create_bucket(Bucket=BUCKET)
    packaged = tmp_path / "packaged.yaml"
    told = tool(
        *("sam", "package", "--template-file", built / "template.yaml", "--output-template-file", packaged),
        *("--s3-bucket", BUCKET, "--s3-prefix", PREFIX),
        **uploads,
    )
    assert told.returncode == 0, told.stderr

    sizes = {one["Key"]: one["Size"] for one in s3.list_objects_v2(Bucket=BUCKET)["Contents"]}
    seen: set[str] = set()
    waiting = locations(read(packaged))
    while waiting:
        location = waiting.pop()
        # A nested template is named by its address, everything else by bucket and key.
        key = "/".join(PurePosixPath(location).parts[-2:])
        assert key in sizes, location
        if key.endswith(".template") and key not in seen:
            nested = tmp_path / PurePosixPath(key).name
            nested.write_bytes(s3.get_object(Bucket=BUCKET, Key=key)["Body"].read())
            waiting += locations(read(nested))
        seen.add(key)
    # Roles let jobs read their script under the prefix, and nothing else is there.
    assert seen == set(sizes)
    assert all(key.startswith(f"{PREFIX}/") for key in seen)
    # One layer, one publisher, two scripts, three nested templates, seven functions; both flows share them.
    assert len(seen) == 14


def test_each_environment_of_samconfig_is_a_pair_of_flows_under_its_own_prefix() -> None:
    config = tomllib.loads((ROOT / "samconfig.toml").read_text())
    for name in ("dev", "staging", "prod"):
        deploy = config[name]["deploy"]["parameters"]
        given = dict(one.split("=", 1) for one in deploy["parameter_overrides"])
        assert given["Environment"] == name
        assert deploy["s3_prefix"] == deploy["stack_name"] == f"mirrorless-{name}"
        assert set(Stack(TEMPLATE, given).nested) == {"Forward", "Backward"}
        assert "template_file" not in deploy
        assert "CAPABILITY_AUTO_EXPAND" in deploy["capabilities"]
    assert config["default"]["build"]["parameters"] == {
        "template_file": "infra/template.yaml",
        "parallel": True,
        "cached": False,
    }

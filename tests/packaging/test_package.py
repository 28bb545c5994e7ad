"""What `sam deploy` uploads by itself is all that the stacks need from S3."""

from __future__ import annotations

import tomllib
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final

import boto3
import pytest

from tests.support.aws import aws_server
from tests.support.template import ROOT, Stack, configuration, custom, read

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
        properties = resource.get("Properties", {})
        found += [properties[name] for name in ("CodeUri", "ContentUri", "Location") if name in properties]
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
    assert seen == set(sizes)
    # One layer, one publisher, five nested templates, nine functions; both flows share them.
    assert len(seen) == 16


def test_the_examples_of_samconfig_are_deployments_of_seven_parameters_at_most() -> None:
    config = tomllib.loads((ROOT / "samconfig.toml").read_text())
    assert config.pop("version") == 0.1
    default = config.pop("default")
    deployments = {name: one["deploy"]["parameters"] for name, one in config.items()}
    assert list(deployments) == ["prod", "prod-back", "dev", "shared", "orders"]
    for name, deploy in deployments.items():
        build = config[name].get("build", default["build"])["parameters"]
        given = dict(one.split("=", 1) for one in deploy.get("parameter_overrides", ()))
        assert len(given) <= 7
        stack = Stack(ROOT / build["template_file"], given, custom(configuration(both_ways=True)))
        assert stack.outputs
        assert deploy["stack_name"] == f"mirrorless-{name}"
        assert "template_file" not in deploy
        assert "CAPABILITY_AUTO_EXPAND" in deploy["capabilities"]
        # Recent documentation does not list the smallest worker any more.
        assert "G.025X" not in str(deploy)
    assert default["build"]["parameters"] == {
        "template_file": "infra/template.yaml",
        "parallel": True,
        "cached": False,
    }


def test_the_first_example_is_two_regions_each_flow_in_that_of_its_target() -> None:
    config = tomllib.loads((ROOT / "samconfig.toml").read_text())
    for name in ("prod", "prod-back"):
        deploy = config[name]["deploy"]["parameters"]
        given = dict(one.split("=", 1) for one in deploy["parameter_overrides"])
        source, target = (given[key].split(":")[3] for key in ("FirstClusterArn", "SecondClusterArn"))
        assert source != target == deploy["region"]

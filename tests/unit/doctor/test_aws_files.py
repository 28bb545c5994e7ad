"""Parameters of deployments in files: samconfig.toml, templates, and the JSON of the AWS CLI."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mirrorless.doctor.aws.deployment import parse_arn
from mirrorless.doctor.aws.files import described
from mirrorless.errors import ConfigurationError

ROOT = Path(__file__).parents[3]
ARN = "arn:aws:kafka:eu-west-1:444455556666:cluster/backup/1"


@pytest.fixture(autouse=True)
def _region(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")


def test_every_environment_of_the_example() -> None:
    found = {one.name.rpartition(" ")[2]: one for one in described(str(ROOT / "samconfig.toml"))}
    assert {name: one.region for name, one in found.items()} == {
        "prod": "eu-west-1",
        "prod-back": "eu-central-1",
        "dev": "eu-central-1",
        "orders": "eu-west-1",
    }
    prod = found["prod"]
    assert prod.subnets == ("subnet-0a1b2c3d4e5f60001", "subnet-0a1b2c3d4e5f60002")
    assert prod.config_location.startswith(
        "s3://mirrorless-config-444455556666-eu-west-1/prod/mm2.properties?versionId="
    )
    polled = [prod.polled(end) for end in prod.clusters]
    assert polled[0] is None
    assert polled[1] == prod.clusters[1].cluster
    assert found["dev"].flows == 2
    assert [end.prefix for end in found["orders"].clusters] == ["Source", "Target"]


def test_overrides_as_one_text(tmp_path: Path) -> None:
    file = tmp_path / "samconfig.toml"
    file.write_text(
        """[default.global.parameters]
region = "us-east-2"
[default.deploy.parameters]
parameter_overrides = 'SubnetIds="subnet-1,subnet-2" ParameterKey=Triggers,ParameterValue=off'
"""
    )
    (one,) = described(str(file))
    assert (one.subnets, one.triggers, one.region) == (("subnet-1", "subnet-2"), "off", "us-east-2")


def test_a_template_that_nests_the_project_s(tmp_path: Path) -> None:
    file = tmp_path / "stack.yaml"
    file.write_text(
        f"""Parameters:
  Subnets: {{Type: String, Default: "subnet-1,subnet-2"}}
Resources:
  Queue: {{Type: AWS::SQS::Queue}}
  Mirrorless:
    Type: AWS::CloudFormation::Stack
    Properties:
      TemplateURL: packaged.yaml
      Parameters:
        SubnetIds: !Ref Subnets
        SecurityGroupIds: !Join [",", [sg-1, !GetAtt Group.GroupId]]
        SecondClusterArn: {ARN}
        BackwardEnabled: true
"""
    )
    (one,) = described(str(file))
    assert one.name == "stack.yaml: Mirrorless"
    assert (one.subnets, one.security_groups, one.flows) == (("subnet-1", "subnet-2"), ("sg-1",), 2)
    assert one.clusters[1].cluster == parse_arn(ARN)


def test_a_template_with_defaults_and_the_json_of_the_cli(tmp_path: Path) -> None:
    template, values = tmp_path / "packaged.json", tmp_path / "parameters.json"
    declared = {"SubnetIds": {"Type": "String", "Default": "subnet-1"}, "Flow": {"Type": "String"}}
    template.write_text(json.dumps({"Parameters": declared}))
    values.write_text(json.dumps([{"ParameterKey": "SubnetIds", "ParameterValue": "subnet-1"}]))
    for file in (template, values):
        (one,) = described(str(file))
        assert (one.subnets, one.region, one.is_deployed) == (("subnet-1",), "eu-west-1", False)


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("samconfig.toml", "version = 0.1\n", "has no value for the parameter SubnetIds"),
        ("template.yaml", "Parameters:\n  SubnetIds: {Type: String}\n", "has no value for the parameter SubnetIds"),
        ("template.yaml", "a: [\n", "cannot be read"),
        ("samconfig.toml", "= 1\n", "cannot be read"),
        ("template.yaml", "text\n", "is no template"),
        ("template.yaml", "Parameters:\nResources:\n", "has no value for the parameter SubnetIds"),
        ("values.json", '[{"Key": "SubnetIds", "Value": "subnet-1"}]', "has no value for the parameter SubnetIds"),
        ("samconfig.toml", "dev = 1\n[prod]\ndeploy = 2\n", "has no value for the parameter SubnetIds"),
        (
            "template.yaml",
            "Resources: {Group: {Type: AWS::Redshift::ClusterParameterGroup, Properties: {Parameters: [{a: b}]}}}\n",
            "has no value for the parameter SubnetIds",
        ),
    ],
)
def test_files_without_parameters(tmp_path: Path, name: str, text: str, reason: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(ConfigurationError, match=reason):
        described(str(file))


def test_a_region_that_is_not_configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_DEFAULT_REGION", "AWS_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    file = tmp_path / "parameters.json"
    file.write_text("[]")
    with pytest.raises(Exception, match="no region is configured; set AWS_REGION"):
        described(str(file))

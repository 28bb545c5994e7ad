"""What an organisation asks of roles, logs and buckets: boundaries, paths, trust, keys, and an end."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any, Final

from tests.support.template import ACCOUNT, ROOT, environment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.template import Stack

BOUNDARY: Final = f"arn:aws:iam::{ACCOUNT}:policy/boundary"


def everything(stack: Stack) -> Iterator[Stack]:
    yield stack
    for nested in stack.nested.values():
        yield from everything(nested)


def of_type(kind: str, **parameters: str) -> list[dict[str, Any]]:
    """Return the properties of all resources of a type, at any depth."""
    deployment = environment(BackwardEnabled="true", **parameters)
    return [one for stack in everything(deployment) for one in stack.of_type(kind).values()]


def test_every_role_has_the_boundary_and_the_path_that_are_given() -> None:
    roles = of_type("AWS::IAM::Role", PermissionsBoundary=BOUNDARY, RolePath="/mirrorless/")
    assert len(roles) == 1 + 2 * 12
    assert {(one["PermissionsBoundary"], one["Path"]) for one in roles} == {(BOUNDARY, "/mirrorless/")}
    policies = of_type("AWS::IAM::ManagedPolicy", RolePath="/mirrorless/")
    assert {one["Path"] for one in policies} == {"/mirrorless/"}
    assert not any("PermissionsBoundary" in one or one["Path"] != "/" for one in of_type("AWS::IAM::Role"))


def test_roles_are_assumed_in_the_name_of_this_account_only() -> None:
    for role in of_type("AWS::IAM::Role"):
        (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
        # IfExists: a service that does not say in whose name it acts would assume no role at all.
        assert trust["Condition"] == {"StringEqualsIfExists": {"aws:SourceAccount": ACCOUNT}}


def test_logs_are_encrypted_with_the_key_that_is_given() -> None:
    assert {one["KmsKeyId"] for one in of_type("AWS::Logs::LogGroup", LogKmsKeyArn="arn:key")} == {"arn:key"}
    assert not any("KmsKeyId" in one for one in of_type("AWS::Logs::LogGroup"))


def test_reports_and_temporary_files_end_and_releases_stay() -> None:
    (bucket,) = of_type("AWS::S3::Bucket", ReportRetentionDays="90")
    rules = {one["Id"]: one for one in bucket["LifecycleConfiguration"]["Rules"]}
    assert (rules["reports"]["Prefix"], rules["reports"]["ExpirationInDays"]) == ("verify/", "90")
    assert (rules["drills"]["Prefix"], rules["drills"]["ExpirationInDays"]) == ("drill/", "90")
    assert rules["temporary"]["Prefix"] == "temp/"
    assert not any("ExpirationInDays" in one and not one.get("Prefix") for one in rules.values())
    jobs = of_type("AWS::Glue::Job")
    assert all(one["DefaultArguments"]["--TempDir"].startswith("s3://<Artifacts>/temp/stack-") for one in jobs)


def test_custom_resources_are_in_the_vpc_if_wanted() -> None:
    def networks(**parameters: str) -> list[Any]:
        deployment = environment(**parameters)
        publisher = deployment.nested["Shared"].of_type("AWS::Serverless::Function")["Publisher"]
        reader = deployment.nested["Forward"].of_type("AWS::Lambda::Function")["SettingsReader"]
        roles = {
            **deployment.nested["Shared"].of_type("AWS::IAM::Role"),
            **deployment.nested["Forward"].of_type("AWS::IAM::Role"),
        }
        for role in roles.values():
            sids = [one.get("Sid") for one in role["Policies"][0]["PolicyDocument"]["Statement"]]
            assert ("Network" in sids) == bool(parameters)
        return [one.get("VpcConfig") for one in (publisher, reader)]

    assert networks() == [None, None]
    inside = {"SubnetIds": ["subnet-1", "subnet-2"], "SecurityGroupIds": ["sg-1"]}
    assert networks(CustomResourcesInVpc="true") == [inside, inside]


def test_the_publisher_keeps_one_version_of_itself() -> None:
    shared = environment().nested["Shared"]
    publisher = shared.of_type("AWS::Serverless::Function")["Publisher"]
    assert publisher["VersionDeletionPolicy"] == "Delete"


def test_each_environment_of_production_notifies_of_alarms() -> None:
    written = tomllib.loads((ROOT / "samconfig.toml").read_text())
    for name in ("prod", "prod-back"):
        given = written[name]["deploy"]["parameters"]["parameter_overrides"]
        region = written[name]["deploy"]["parameters"]["region"]
        assert any(one.startswith(f"AlarmTopicArn=arn:aws:sns:{region}:") for one in given), name


def test_every_requirement_has_a_hash() -> None:
    for file in sorted((ROOT / "requirements").glob("*.txt")):
        lines = [line for line in file.read_text().splitlines() if line and not line.lstrip().startswith("#")]
        pinned = [number for number, line in enumerate(lines) if "==" in line]
        assert pinned
        assert all(lines[number + 1].strip().startswith("--hash=sha256:") for number in pinned), file.name

"""Secrets Manager, the SSM parameter store and S3 hold values and whole files; boto3 is needed only for those."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import boto3
import pytest
from moto import mock_aws

from mirrorless.errors import ConfigurationError
from mirrorless.settings import load
from mirrorless.settings.locations import read, version_of
from mirrorless.settings.references import resolve

if TYPE_CHECKING:
    from collections.abc import Iterator

FILE = "clusters=A,B\nA.bootstrap.servers=a:1\nB.bootstrap.servers=b:1\nA->B.enabled=true\n"


@pytest.fixture
def _aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    with mock_aws():
        yield


@pytest.mark.filterwarnings("default")
@pytest.mark.usefixtures("_aws")
def test_secrets_manager() -> None:
    manager = boto3.client("secretsmanager")
    arn = manager.create_secret(Name="kafka/prod", SecretString='{"password": "swordfish", "port": 9092}')["ARN"]
    manager.create_secret(Name="plain", SecretString="swordfish")

    assert resolve("${secretsmanager:kafka/prod:password}", key="k") == "swordfish"
    assert resolve("${secretsmanager:kafka/prod:port}", key="k") == "9092"
    assert resolve("${secretsmanager:plain}", key="k") == "swordfish"
    assert resolve(f"${{secretsmanager:{arn}:password}}", key="k") == "swordfish"
    assert resolve(f"${{secretsmanager:{arn.replace(':', '%3A')}:password}}", key="k") == "swordfish"
    assert resolve("${secretsmanager@eu-west-1:plain}", key="k") == "swordfish"
    with pytest.raises(ConfigurationError, match=r"^k=\$\{.*\}: the secret has no key user$"):
        resolve("${secretsmanager:kafka/prod:user}", key="k")
    with pytest.raises(ConfigurationError, match=r"secretsmanager answered ResourceNotFoundException: "):
        resolve("${secretsmanager:none:user}", key="k")
    with pytest.raises(ConfigurationError, match=r"secretsmanager answered ResourceNotFoundException: "):
        resolve("${secretsmanager@us-east-1:plain}", key="k")


@pytest.mark.filterwarnings("default")
@pytest.mark.usefixtures("_aws")
def test_the_parameter_store() -> None:
    store = boto3.client("ssm")
    store.put_parameter(Name="/kafka/password", Value="swordfish", Type="SecureString")
    store.put_parameter(Name="/mm2", Value=FILE, Type="String")

    assert resolve("${ssm:/kafka/password}", key="k") == "swordfish"
    assert resolve("${ssm::/kafka/password}", key="k") == "swordfish"
    for location in ("ssm:/mm2", "ssm://mm2"):
        settings = load(location)
        assert settings.file == location
        assert [flow.name for flow in settings.flows] == ["A->B"]
    with pytest.raises(ConfigurationError, match=r"^ssm:/none: cannot be read: ssm answered ParameterNotFound: "):
        load("ssm:/none")


@pytest.mark.filterwarnings("default")
@pytest.mark.usefixtures("_aws")
def test_a_file_in_s3() -> None:
    s3 = boto3.client("s3")
    s3.create_bucket(Bucket="conf", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
    s3.put_object(Bucket="conf", Key="prod/mm2.properties", Body=FILE.encode())

    settings = load("s3://conf/prod/mm2.properties")
    assert [flow.name for flow in settings.flows] == ["A->B"]
    with pytest.raises(ConfigurationError, match=r"^s3://conf/none: cannot be read: s3 answered NoSuchKey: "):
        load("s3://conf/none")
    with pytest.raises(ConfigurationError, match=r"^s3://conf: cannot be read: must be s3://bucket/key$"):
        load("s3://conf")


@pytest.mark.filterwarnings("default")
@pytest.mark.usefixtures("_aws")
def test_one_version_of_a_file_stays_while_the_file_changes() -> None:
    s3, ssm = boto3.client("s3"), boto3.client("ssm")
    s3.create_bucket(Bucket="versions", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
    s3.put_object(Bucket="versions", Key="plain", Body=b"x=1")
    assert (read("s3://versions/plain"), version_of("s3://versions/plain")) == ("x=1", None)
    s3.put_bucket_versioning(Bucket="versions", VersioningConfiguration={"Status": "Enabled"})
    first, second = (s3.put_object(Bucket="versions", Key="mm2", Body=text)["VersionId"] for text in (b"x=1", b"x=2"))
    pinned = f"s3://versions/mm2?versionId={first}"
    assert (read("s3://versions/mm2"), version_of("s3://versions/mm2")) == ("x=2", second)
    assert (read(pinned), version_of(pinned)) == ("x=1", first)
    with pytest.raises(ConfigurationError, match="cannot be read: s3 answered "):
        read("s3://versions/mm2?versionId=none")

    for value in ("x=1", "x=2"):
        ssm.put_parameter(Name="/versions", Value=value, Type="String", Overwrite=True)
    assert (read("ssm:/versions"), version_of("ssm:/versions")) == ("x=2", "2")
    assert read("ssm:/versions:1") == "x=1"


@pytest.mark.parametrize("location", ["s3://a/b", "ssm:/a"])
def test_without_boto3_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch, location: str) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(
        ConfigurationError, match=r"cannot be read: .* needs the package boto3: pip install mirrorless$"
    ):
        load(location)

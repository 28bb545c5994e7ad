"""Jobs know their region, and take only arguments that are meant."""

from __future__ import annotations

import os
from typing import Any

import pytest

from mirrorless.publishing import glue_session
from mirrorless.publishing.glue_session import job_arguments, region_variables

REQUIRED = ["--MIRRORLESS_CONFIG", "s3://a/b", "--MIRRORLESS_FLOW", "a->b"]


class Builder:
    """Records what a session would be configured with."""

    def __init__(self) -> None:
        self.configured: dict[str, str] = {}

    def appName(self, _name: str) -> Builder:  # noqa: N802 -- Spark's
        return self

    def config(self, key: str, value: str) -> Builder:
        self.configured[key] = value
        return self

    def getOrCreate(self) -> Builder:  # noqa: N802 -- Spark's
        return self


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Any:  # noqa: ANN401
    builder = Builder()
    monkeypatch.setattr(glue_session, "SparkSession", type("Session", (), {"builder": builder}))
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    return glue_session.glue_session


def test_driver_executors_and_s3a_know_the_region(session: Any) -> None:  # noqa: ANN401
    assert session("copy", region="eu-west-1").configured == {
        "spark.executorEnv.AWS_REGION": "eu-west-1",
        "spark.executorEnv.AWS_DEFAULT_REGION": "eu-west-1",
        "spark.hadoop.fs.s3a.endpoint.region": "eu-west-1",
    }
    assert os.environ["AWS_REGION"] == os.environ["AWS_DEFAULT_REGION"] == "eu-west-1"


def test_on_one_machine_the_region_is_the_environments(session: Any) -> None:  # noqa: ANN401
    assert session("copy", region=None).configured == {}
    assert "AWS_REGION" not in os.environ
    assert region_variables(None) == {}


def test_glues_own_arguments_are_passed_over_and_none_is_an_abbreviation() -> None:
    parser = job_arguments(None)
    parser.add_argument("--sample", type=float, default=100.0)
    given = [*REQUIRED, "--TempDir", "s3://a/temp/", "--JOB_NAME", "x", "--s", "1", "--MIRRORLESS_REG", "nowhere"]
    arguments, others = parser.parse_known_args(given)
    assert (arguments.sample, arguments.region) == (100.0, None)
    assert "--s" in others

"""Environment variables of the functions. On Lambda they are the process's, read once."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Annotated, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, ValidationError

from mirrorless.errors import ConfigurationError
from mirrorless.functions.runtime_context import runtime_context

if TYPE_CHECKING:
    from collections.abc import Mapping

_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
_Optional = Annotated[str | None, BeforeValidator(lambda text: (text or "").strip() or None)]


class FunctionEnvironment(BaseModel):
    """The variables of every function.

    `POWERTOOLS_SERVICE_NAME`, `POWERTOOLS_METRICS_NAMESPACE` and `LOG_LEVEL` are read by aws-lambda-powertools itself.
    """

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    config: _Text = Field(alias="MIRRORLESS_CONFIG")
    """Location of the MirrorMaker 2 configuration: `s3://bucket/key`, `ssm:/name` or a path."""
    flow: _Text = Field(alias="MIRRORLESS_FLOW")
    """The flow of this stack, `A->B`."""
    failures: _Optional = Field(default=None, alias="MIRRORLESS_FAILURES")
    """URL of the SQS queue for records of an MSK event that cannot be processed; needed only by the two functions with
    an MSK trigger."""


class CopyEnvironment(FunctionEnvironment):
    """Additional variables of the copy function."""

    functions: Annotated[int, Field(ge=1)] = Field(default=1, alias="MIRRORLESS_COPY_FUNCTIONS")
    """Number of invocations that share the flow's partitions."""


class SupervisorEnvironment(FunctionEnvironment):
    """Additional variables of the job supervisor."""

    copy_functions: Annotated[int, Field(ge=1)] = Field(default=1, alias="MIRRORLESS_COPY_FUNCTIONS")
    """Number of functions that copy, each a share of the partitions."""
    job: _Optional = Field(default=None, alias="MIRRORLESS_JOB")
    """Name of the Glue job that copies; None if the deployment has none."""
    release: _Optional = Field(default=None, alias="MIRRORLESS_RELEASE")
    """What was deployed, as the job's argument `--MIRRORLESS_RELEASE` has it; a run of another release is restarted."""


class DrillEnvironment(FunctionEnvironment):
    """Additional variables of the drill."""

    reports: _Text = Field(alias="MIRRORLESS_REPORTS")
    """Folder of the reports, such as `s3://bucket/drill/name`, or a path."""


_Environment = TypeVar("_Environment", bound=FunctionEnvironment)


def parse(model: type[_Environment], variables: Mapping[str, str]) -> _Environment:
    """Read one of the models above; raises `ConfigurationError` with the name of the variable."""
    try:
        return model.model_validate({key: value for key, value in variables.items() if key.startswith("MIRRORLESS_")})
    except ValidationError as error:
        wrong = error.errors()[0]
        name = str(wrong["loc"][0])
        reasons = {"missing": "is not set", "string_too_short": "is empty"}
        reason = reasons.get(wrong["type"], "is not a whole number, 1 or more")
        raise ConfigurationError(f"{reason}; set it in the function's environment", key=name) from None


def environment() -> FunctionEnvironment:
    """This function's environment; raises `ConfigurationError`."""
    return _read(FunctionEnvironment)


def copy_environment() -> CopyEnvironment:
    """This function's environment with the copy function's variables; raises `ConfigurationError`."""
    return _read(CopyEnvironment)


def supervisor_environment() -> SupervisorEnvironment:
    """This function's environment with the job supervisor's variables; raises `ConfigurationError`."""
    return _read(SupervisorEnvironment)


def drill_environment() -> DrillEnvironment:
    """This function's environment with the drill's variables; raises `ConfigurationError`."""
    return _read(DrillEnvironment)


def _read(model: type[_Environment]) -> _Environment:
    given = runtime_context()
    return _of_process(model) if given is None else parse(model, given.variables)


@cache
def _of_process(model: type[_Environment]) -> _Environment:
    return parse(model, os.environ)

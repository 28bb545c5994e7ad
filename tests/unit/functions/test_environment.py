"""The variables of a function; what is wrong with one names it."""

from __future__ import annotations

import pytest

from mirrorless.errors import ConfigurationError
from mirrorless.functions.environment import CopyEnvironment, SupervisorEnvironment, parse

KNOWN = {"MIRRORLESS_CONFIG": "s3://bucket/mm2.properties", "MIRRORLESS_FLOW": "A->B"}


@pytest.mark.parametrize(("text", "functions"), [(None, 1), ("1", 1), ("12", 12)])
def test_one_invocation_copies_unless_there_are_more(text: str | None, functions: int) -> None:
    variables = KNOWN if text is None else KNOWN | {"MIRRORLESS_COPY_FUNCTIONS": text}
    assert parse(CopyEnvironment, variables | {"PATH": "/bin"}).functions == functions


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5", ""])
def test_a_wrong_number_of_invocations_is_named(text: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        parse(CopyEnvironment, KNOWN | {"MIRRORLESS_COPY_FUNCTIONS": text})
    assert str(raised.value) == (
        "MIRRORLESS_COPY_FUNCTIONS: is not a whole number, 1 or more; set it in the function's environment"
    )


@pytest.mark.parametrize(("text", "reason"), [(None, "is not set"), (" ", "is empty")])
def test_a_missing_variable_is_named(text: str | None, reason: str) -> None:
    variables = {**KNOWN, "MIRRORLESS_FLOW": text or ""} if text else {"MIRRORLESS_CONFIG": "s3://bucket/key"}
    with pytest.raises(ConfigurationError, match=f"MIRRORLESS_FLOW: {reason}; set it"):
        parse(SupervisorEnvironment, variables)


@pytest.mark.parametrize(("text", "job"), [(None, None), ("", None), ("mirrorless-copy", "mirrorless-copy")])
def test_a_deployment_may_have_no_job(text: str | None, job: str | None) -> None:
    variables = KNOWN if text is None else KNOWN | {"MIRRORLESS_JOB": text}
    assert parse(SupervisorEnvironment, variables).job == job

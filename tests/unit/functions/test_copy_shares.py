"""The invocation of share 0 starts those of the other shares."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from mirrorless.copy.progress.run_marks import Share
from mirrorless.errors import AwsError
from mirrorless.functions import copy
from mirrorless.functions.copy import _start_others
from mirrorless.functions.events import CopyShareEvent, parse

if TYPE_CHECKING:
    from collections.abc import Iterator


class Lambda:
    """The client of Lambda; each call is kept, and refused if the test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[dict[str, Any]] = []
        self.refused = False

        @contextmanager
        def client(service: str, *, region: str | None) -> Iterator[Lambda]:
            assert (service, region) == ("lambda", None)
            yield self

        monkeypatch.setattr(copy, "client", client)
        monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "orders-copy")

    def invoke(self, **arguments: Any) -> None:  # noqa: ANN401 -- boto3's
        if self.refused:
            raise ValueError("lambda answered TooManyRequestsException: Rate Exceeded.")
        self.calls.append(arguments)


@pytest.fixture
def functions(monkeypatch: pytest.MonkeyPatch) -> Lambda:
    return Lambda(monkeypatch)


def test_every_other_share_has_an_event(functions: Lambda) -> None:
    _start_others(Share(0, 3))
    assert [(call["FunctionName"], call["InvocationType"]) for call in functions.calls] == [
        ("orders-copy", "Event")
    ] * 2
    events = [parse(json.loads(call["Payload"])) for call in functions.calls]
    assert events == [CopyShareEvent(number=1, of=3), CopyShareEvent(number=2, of=3)]


def test_an_error_of_lambda_is_one_line(functions: Lambda) -> None:
    functions.refused = True
    with pytest.raises(AwsError) as raised:
        _start_others(Share(0, 3))
    assert str(raised.value) == (
        "function orders-copy: starting the other 2 invocations failed: "
        "lambda answered TooManyRequestsException: Rate Exceeded."
    )

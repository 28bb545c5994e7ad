"""One check of a deployment that meets an answer nobody expected hides no other check's findings."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, cast

from mirrorless.doctor.aws import examination
from mirrorless.doctor.aws.deployment import Deployment
from mirrorless.doctor.findings import Finding, Status

if TYPE_CHECKING:
    import pytest

    from mirrorless.doctor.aws.api import Api


def test_an_unexpected_answer_is_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    good = Finding(check="good", status=Status.OK, text="fine")

    def broken(_deployment: Deployment, _api: Api) -> NoReturn:
        raise KeyError("RouteTables")

    monkeypatch.setattr(examination, "_CHECKS", (("broken", broken), ("good", lambda *_: [good])))
    deployment = Deployment(name="prod", region="eu-west-1", is_deployed=True)
    first, second = examination.examine_deployment(deployment, cast("Api", None))
    assert (first.check, first.status) == ("broken", Status.NOT_CHECKED)
    assert first.text == "unexpected answer of AWS: KeyError: 'RouteTables'"
    assert second == good

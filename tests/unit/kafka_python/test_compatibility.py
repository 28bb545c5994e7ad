"""Another kafka-python than this package was written for is refused at import, in one line that says what to do."""

from __future__ import annotations

import runpy
import sys
from typing import TYPE_CHECKING, Any

import kafka
import pytest
from kafka.net import connection, selector
from kafka.net.selector import NetworkSelector

from mirrorless import kafka_python
from mirrorless.errors import PrerequisiteError

if TYPE_CHECKING:
    from collections.abc import Callable


def import_again() -> str:
    """Run the entry file as an import does; returns the error's text, or nothing."""
    try:
        runpy.run_path(kafka_python.__file__)
    except PrerequisiteError as error:
        return str(error)
    return ""


def test_the_release_in_use_is_accepted() -> None:
    assert import_again() == ""


@pytest.mark.parametrize("version", ["2.2.15", "3.0.11", "3.1.0", "3.1.0.dev0", "4.0.0", "main"])
def test_another_release_is_refused(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka, "__version__", version)
    assert import_again() == (
        f"kafka-python {version} is installed, mirrorless needs >=3.0.12,<3.1; "
        "run pip install 'kafka-python>=3.0.12,<3.1'"
    )


@pytest.mark.parametrize("version", ["3.0.12", "3.0.13", "3.0.99"])
def test_later_corrections_of_the_release_are_accepted(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka, "__version__", version)
    assert import_again() == ""


def test_a_package_of_that_name_without_a_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(kafka, "__version__")
    assert import_again().startswith("kafka-python of an unknown version is installed, mirrorless needs >=3.0.12,<3.1")


def test_one_that_this_python_cannot_import_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kafka", None)
    with pytest.raises(ImportError):  # as if it were not there: what is missing is said elsewhere
        import_again()

    def broken(name: str) -> Any:  # noqa: ANN401
        raise ModuleNotFoundError("No module named 'kafka.vendor.six.moves'", name="kafka.vendor.six.moves")

    monkeypatch.setattr("importlib.import_module", broken)
    assert import_again() == (
        "the kafka-python that is installed cannot be imported (No module named 'kafka.vendor.six.moves'); "
        "run pip install 'kafka-python>=3.0.12,<3.1'"
    )


def other_parameters(self: object, task: object, reason: object) -> None:
    """As `_unschedule` might become."""


def makes_no_parser(self: object, transport: object) -> None:
    """As `connection_made` might become."""


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            lambda patch: patch.delattr(NetworkSelector, "_schedule_tasks"),
            "kafka.net.selector:NetworkSelector._schedule_tasks is missing",
        ),
        (lambda patch: patch.delattr(selector, "TaskState"), "kafka.net.selector:TaskState.READY is missing"),
        (
            lambda patch: patch.setattr(NetworkSelector, "_unschedule", other_parameters),
            "kafka.net.selector:NetworkSelector._unschedule does not take (task)",
        ),
        (
            lambda patch: patch.setattr(NetworkSelector, "__init__", makes_no_parser),
            "kafka.net.selector:NetworkSelector()._ready is missing",
        ),
        (
            lambda patch: patch.setattr(connection.KafkaConnection, "connection_made", makes_no_parser),
            "kafka.net.connection:KafkaConnection.connection_made does not use KafkaProtocol",
        ),
    ],
    ids=[
        "a method is gone",
        "a class is gone",
        "other parameters",
        "an attribute is gone",
        "a replacement is not used",
    ],
)
def test_names_that_are_not_as_they_were_are_told(
    change: Callable[[pytest.MonkeyPatch], None], problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(kafka, "__version__", "3.0.13")
        change(patch)
        text = import_again()
    assert text.startswith("kafka-python 3.0.13 is not what mirrorless was written for: ")
    assert problem in text
    assert text.endswith("; run pip install 'kafka-python==3.0.12'")

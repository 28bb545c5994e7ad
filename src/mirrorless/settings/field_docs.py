"""Type, default and meaning of a flow's setting, from its one declaration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

from mirrorless.settings.cluster import Cluster
from mirrorless.settings.model import Flow
from mirrorless.settings.values import ValueType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# What defaults are made of, as names of the settings' own documentation.
_EXAMPLE = {"source": Cluster(alias="<source>", bootstrap_servers="<source>")}


def kind_of(field: str) -> str:
    """Return the accepted values of a field of Flow, in words."""
    info = Flow.model_fields[field]
    marks = [*info.metadata, *_marks(info.annotation)]
    return next((mark.words for mark in marks if isinstance(mark, ValueType)), "text")


def default_of(field: str) -> str | None:
    """Return a field's default as it is written in a file; None if there is none."""
    return as_text(Flow.model_fields[field].get_default(call_default_factory=True, validated_data=_EXAMPLE))


def meaning_of(field: str) -> str:
    """Return the description of the field in the model."""
    return " ".join((Flow.model_fields[field].description or "").split())


def as_text(value: object) -> str | None:
    """Return a setting's value as it is written in a file."""
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _marks(annotation: Any) -> Iterator[object]:  # noqa: ANN401 -- a type as typing has it
    """Yield what is annotated anywhere inside a type, as in `Annotated[int, mark] | None`."""
    if get_origin(annotation) is Annotated:
        inner: Iterable[object] = get_args(annotation)[1:]
        yield from inner
    for part in get_args(annotation):
        yield from _marks(part)

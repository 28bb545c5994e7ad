"""Someone who listens to the metadata of a flow."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mirrorless.metadata.passes import Pass


class Heard:
    """Remembers what it is told."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.passes: list[tuple[str, Pass]] = []
        self.troubles: list[tuple[str, str]] = []

    def discovered(self, flow: str, found: Pass) -> None:
        self.passes.append((flow, found))

    def note(self, flow: str, text: str) -> None:
        self.notes.append(f"{flow}: {text}")

    def trouble(self, flow: str, text: str) -> None:
        self.troubles.append((flow, text))

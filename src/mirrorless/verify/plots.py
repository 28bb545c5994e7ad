"""Bar charts by topic, as SVG within a page: no library and no script needed to view them."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

GREEN: Final = "#2f855a"
RED: Final = "#c53030"
AMBER: Final = "#b7791f"
MOST_BARS: Final = 40
_LABEL, _WIDTH, _BAR, _ROW = 240, 760, 14, 24


@dataclass(frozen=True, slots=True)
class Bar:
    """A topic's bar: parts with their colours, and the text after it."""

    label: str
    parts: tuple[tuple[int, str], ...]
    text: str

    @property
    def total(self) -> int:
        """Its length, in its unit."""
        return sum(number for number, _ in self.parts)


def bars(title: str, found: Sequence[Bar], *, shares: bool = False) -> str:
    """Return a plot of at most `MOST_BARS`, the longest; it says so. With `shares`, every bar is full, by its parts."""
    shown = sorted(found, key=lambda bar: -bar.total)[:MOST_BARS] if len(found) > MOST_BARS else list(found)
    longest = max((bar.total for bar in shown), default=0) or 1
    height = _ROW * len(shown) + 8
    room = _WIDTH - _LABEL - 150
    rows: list[str] = []
    for number, bar in enumerate(shown):
        y = number * _ROW + 4
        rows.append(
            f'<text x="{_LABEL - 8}" y="{y + 12}" text-anchor="end">{escape(_short(bar.label))}</text>'
            f'<rect x="{_LABEL}" y="{y}" width="{room}" height="{_BAR}" fill="#edf2f7"/>'
        )
        x = float(_LABEL)
        whole = (bar.total or 1) if shares else longest
        for size, colour in bar.parts:
            width = room * size / whole
            if size:
                width = max(width, 2.0)  # one different window among thousands must be visible
            rows.append(f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{_BAR}" fill="{colour}"/>')
            x += width
        rows.append(f'<text x="{_LABEL + room + 8}" y="{y + 12}">{escape(bar.text)}</text>')
    left = f"<p>The longest {MOST_BARS} of {len(found)}.</p>" if len(found) > len(shown) else ""
    svg = f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(title)}">{"".join(rows)}</svg>'
    return f"<h3>{escape(title)}</h3>{svg}{left}"


def _short(label: str) -> str:
    return label if len(label) <= 34 else f"{label[:33]}…"

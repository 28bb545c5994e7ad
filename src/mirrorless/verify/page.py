"""The result as one HTML page without scripts or other files."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING, Final

from mirrorless.report_html import bullets, grid
from mirrorless.verify.findings import OF_RECORDS, by_topic
from mirrorless.verify.report import RESULTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mirrorless.verify.findings import Difference, VerificationResult
    from mirrorless.verify.repair import Step

MOST_ROWS: Final = 1_000
GREEN: Final = "#2f855a"
RED: Final = "#c53030"
AMBER: Final = "#b7791f"
MOST_BARS: Final = 40
_LABEL, _WIDTH, _BAR, _ROW = 240, 760, 14, 24
_COLOURS: Final = (GREEN, RED, AMBER)
_STYLE: Final = """
body { font: 15px/1.45 system-ui, sans-serif; color: #1a202c; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2rem; } h3 { font-size: 1rem; margin: 1rem 0 .3rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .25rem .6rem; border-bottom: 1px solid #e2e8f0; vertical-align: top; }
th { font-weight: 600; background: #f7fafc; } td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
.result { color: #fff; border-radius: .3rem; padding: .15rem .7rem; }
svg { width: 100%; height: auto; font-size: 12px; } ul { padding-left: 1.2rem; } p.small { color: #4a5568; }
"""


def page(verdicts: Sequence[VerificationResult], plans: Sequence[Sequence[Step]] = ()) -> str:
    """Return the page; `plans` are repair plans, one for each result, or none."""
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>mirrorless verify</title>',
        f"<style>{_STYLE}</style></head><body><h1>mirrorless verify</h1>",
    ]
    for number, verdict in enumerate(verdicts):
        parts += _flow(verdict)
        if plans and plans[number]:
            rows = [(one.place, one.repairs, one.action) for one in plans[number]]
            parts += ["<h3>Repair plan</h3>", grid(("where", "repairs", "how"), rows)]
    return "".join([*parts, "</body></html>\n"])


def _flow(verdict: VerificationResult) -> Iterable[str]:
    result = RESULTS[verdict.status]
    when = datetime.fromtimestamp(verdict.began_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    seconds = (verdict.ended_ms - verdict.began_ms) / 1000
    topics = by_topic(verdict)
    yield (
        f'<h2>{escape(verdict.flow)} <span class="result" style="background:{_COLOURS[verdict.status]}">'
        f"{escape(result)}</span></h2>"
        f"<p>{verdict.records:,} records of {len(verdict.partitions):,} partitions compared, "
        f"{verdict.size_bytes / 1e6:,.1f} MB read on both sides; {len(verdict.differences):,} differences; "
        f"{verdict.not_copied:,} records not copied yet.</p>"
        f'<p class="small">Started {when}, took {seconds:,.1f} s.</p>'
    )
    if topics:
        windows = [
            Bar(
                one.topic,
                ((one.windows - one.different, GREEN), (one.different, RED)),
                f"{one.windows:,}" + (f", {one.different:,} differ" if one.different else ""),
            )
            for one in topics
        ]
        yield bars("Windows compared, by topic (keys, of compacted topics)", windows, shares=True)
        lag = [Bar(one.topic, ((one.not_copied, AMBER),), f"{one.not_copied:,}") for one in topics]
        yield bars("Lag: records not copied yet, by topic", lag)
        yield "<h3>Topics</h3>"
        yield grid(
            ("topic", "remote topic", "#partitions", "#records", "#windows", "#differences", "#not copied"),
            [
                (
                    *(one.topic, one.remote_topic, f"{one.partitions:,}", f"{one.records:,}", f"{one.windows:,}"),
                    *(f"{one.differences:,}", f"{one.not_copied:,}"),
                )
                for one in topics
            ],
        )
    if verdict.differences:
        yield "<h3>Differences</h3>"
        yield grid(("where", "#source offset", "#target offset", "what"), [*map(_row, verdict.differences[:MOST_ROWS])])
        if len(verdict.differences) > MOST_ROWS:
            yield f"<p>First {MOST_ROWS:,} of {len(verdict.differences):,}; the JSON has all of them.</p>"
    more = [
        f"{one.topic}-{one.partition}: more differences exist than are listed" for one in verdict.partitions if one.more
    ]
    yield _list("Not compared", verdict.troubles)
    yield _list("More", more)
    notes = [f"{one.topic}-{one.partition}: {note}" for one in verdict.partitions for note in one.notes]
    yield _list("Notes", [*verdict.notes, *notes])


def _row(one: Difference) -> tuple[str, ...]:
    offsets = one.kind in OF_RECORDS or one.upstream is not None
    return (
        one.place,
        "" if one.upstream is None or not offsets else f"{one.upstream:,}",
        "" if one.downstream is None or not offsets else f"{one.downstream:,}",
        one.text,
    )


def _list(title: str, lines: Sequence[str]) -> str:
    return f"<h3>{escape(title)}</h3>{bullets(lines)}" if lines else ""


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

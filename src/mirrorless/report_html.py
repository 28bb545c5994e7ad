"""Parts of a report as one HTML page: no script, no other file, no other host; light or dark as the reader has it."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from mirrorless.doctor.findings import Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_STYLE: Final = """
:root { color-scheme: light dark; --text: #1a202c; --back: #ffffff; --head: #f7fafc; --line: #e2e8f0; --soft: #4a5568;
  --ok: #2f855a; --warning: #975a16; --failed: #c53030; --none: #4a5568; }
@media (prefers-color-scheme: dark) { :root { --text: #e2e8f0; --back: #171923; --head: #232838; --line: #3a4256;
  --soft: #a0aec0; --ok: #276749; --warning: #8a5212; --failed: #b02a2a; --none: #5a6478; } }
body { font: 15px/1.45 system-ui, sans-serif; color: var(--text); background: var(--back); max-width: 62rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2rem; } h3 { font-size: 1rem; margin: 1.2rem 0 .3rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top;
  overflow-wrap: anywhere; }
th { font-weight: 600; background: var(--head); }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
ul { margin: .3rem 0; padding-left: 1.2rem; } p.small, td.small, .fix { color: var(--soft); }
.badge { color: #fff; border-radius: .3rem; padding: .1rem .6rem; white-space: nowrap; }
.figures { display: flex; flex-wrap: wrap; gap: 1rem; margin: 1rem 0; }
.figure { border: 1px solid var(--line); border-radius: .4rem; padding: .6rem 1rem; min-width: 11rem; }
.figure b { display: block; font-size: 1.3rem; }
"""
_COLOURS: Final = {
    Status.OK: "ok",
    Status.WARNING: "warning",
    Status.FAILED: "failed",
    Status.NOT_CHECKED: "none",
}


def document(title: str, parts: Iterable[str]) -> str:
    """Return the page."""
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
    body = "".join(parts)
    return (
        f'<!doctype html><html lang="en"><head>{head}<style>{_STYLE}</style></head>'
        f"<body><h1>{escape(title)}</h1>{body}</body></html>\n"
    )


def badge(status: Status, text: str | None = None) -> str:
    """Return a status in its colour."""
    return f'<span class="badge" style="background:var(--{_COLOURS[status]})">{escape(text or status)}</span>'


def figure(name: str, value: str, note: str = "") -> str:
    """Return a number with its name and a note."""
    return f'<div class="figure">{escape(name)}<b>{escape(value)}</b><span class="fix">{escape(note)}</span></div>'


def bullets(lines: Sequence[str]) -> str:
    """Return a list; nothing without lines."""
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>" if lines else ""


def grid(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; columns that begin with # hold numbers. Cells are text."""
    marks = [' class="n"' if name.startswith("#") else "" for name in columns]
    head = "".join(f"<th{mark}>{escape(name.lstrip('#'))}</th>" for name, mark in zip(columns, marks, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{mark}>{escape(cell)}</td>" for cell, mark in zip(row, marks, strict=True)) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

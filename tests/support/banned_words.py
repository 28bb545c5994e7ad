"""Words and phrases that documents and messages must not contain.

Documents and messages are written in plain technical English. Each entry here has a standard term that a reader would
search for instead. The list has only what is wrong in any context, so that a test can check it: a word that also has a
correct use is left out, such as "behind" (lagging) or "line" (of text).
"""

from __future__ import annotations

import re
from typing import Final

# The phrase, and what to write instead.
INSTEAD: Final[dict[str, str]] = {
    "anew": "from scratch, again",
    "go on": "continue, resume",
    "goes on": "continues, resumes",
    "going on": "continuing",
    "went on": "continued, resumed",
    "gone on": "continued, resumed",
    "whoever": "the caller, the process that ...",
    "of one's own": "custom",
    "of your own": "custom",
    "verdict": "error policy",
    "tally": "partition stats",
    "incarnation": "epoch",
    "surroundings": "runtime context",
    "telling": "reporting",
    "is told": "is reported, is logged",
    "are told": "are reported, are logged",
    "lies behind": "follows",
    "lie behind": "follow",
    "lying behind": "following",
    "such a one": "the noun again",
    "copy rests": "replication pauses",
    "copy lands": "replication finishes in-flight work",
    "in the midst of": "during",
    "by way of": "through, with",
    "without a word": "silently",
    "mends": "fixes, repairs",
    "mended": "fixed, repaired",
    "passed over": "ignored, skipped",
    "passes over": "ignores, skips",
    "goes over": "is replicated",
    "came over": "was replicated",
    "come over": "be replicated",
    "dealt": "assigned",
    "holds up": "delays, blocks",
    "held up": "delayed, blocked",
    "out of reach": "unreachable",
    "somebody": "the noun: an operator, another process",
    "anybody": "the noun: an operator, another process",
    "for ever": "endlessly, forever",
}
BANNED: Final[tuple[str, ...]] = tuple(INSTEAD)

_PATTERN: Final = re.compile(
    r"\b(?:" + "|".join(re.escape(phrase).replace(r"\ ", r"\s+") for phrase in BANNED) + r")\b", re.IGNORECASE
)


def found_in(text: str) -> list[str]:
    """Return the banned phrases in `text` in order of appearance, in lower case and with single blanks."""
    return [" ".join(match[0].lower().split()) for match in _PATTERN.finditer(text)]

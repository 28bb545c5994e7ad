"""Values that would be copied by, or log in with, something else than the file's author means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mirrorless.settings.key_normalizer import EXCLUDED_TOPICS
from mirrorless.settings.masking import MASK, shown
from mirrorless.settings.references import placeholder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mirrorless.settings.precedence import Found


def refused_values(settings: Iterable[Found]) -> Iterator[tuple[Found, str]]:
    """Yield each setting that is refused, with the reason."""
    for one in settings:
        found = placeholder(one.value, secret=shown(one.key, one.value) == MASK)
        if found is not None:
            name = found[2:-1]
            yield (
                one,
                f"{found} names no config provider, so it is not replaced; write ${{env:{name}}} for an environment "
                f"variable, or ${{file:/path:{name}}}",
            )
        earlier = one.entry.earlier
        if earlier is not None and one.key.endswith(EXCLUDED_TOPICS):
            yield (
                one,
                f"lines {earlier.line} and {one.entry.line} set different values, and only the last has an effect: "
                f"topics that only line {earlier.line} excludes would be copied; keep one line",
            )

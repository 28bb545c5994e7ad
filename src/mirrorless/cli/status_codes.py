"""Exit statuses; every command uses these and no others."""

from __future__ import annotations

from typing import Final

FINE: Final = 0
"""The command did its work, and there is nothing to act on."""
FOUND: Final = 1
"""The command did its work and found something: differences, pending changes, failed checks, halted partitions."""
COULD_NOT: Final = 2
"""The command could not do its work, or not all of it: bad input, a cluster that does not answer, a missing package."""

"""What a cluster has beside topics and groups, one kind a module: each has a `KIND`, and is found here by itself."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mirrorless.metadata.kind import Kind

KINDS: Final[tuple[Kind, ...]] = tuple(
    import_module(f"{__name__}.{module.name}").KIND
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda one: one.name)
)
"""Every kind, in the order of the modules' names."""

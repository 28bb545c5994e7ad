"""Single passes over one part of the metadata each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mirrorless.metadata.passes import one_pass
from mirrorless.metadata.planning import Part

if TYPE_CHECKING:
    from mirrorless.metadata.passes import Pass
    from mirrorless.metadata.planning import Admins
    from mirrorless.settings import Flow


def discover_topics(flow: Flow, *, admins: Admins | None = None) -> Pass:
    """Create missing remote topics and partitions, and the progress topic."""
    return one_pass(flow, [Part.TOPICS], admins=admins)


def sync_configs(flow: Flow) -> Pass:
    """Give remote topics the configs of their source topics."""
    return one_pass(flow, [Part.CONFIGS])


def sync_acls(flow: Flow) -> Pass:
    """Give remote topics the ACLs of their source topics."""
    return one_pass(flow, [Part.ACLS])

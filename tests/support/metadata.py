"""Single passes over one part of the metadata each, as the functions make them."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from mirrorless.copy.copied_topics import CopiedTopics
from mirrorless.metadata.passes import one_pass
from mirrorless.metadata.planning import Admins, Part

if TYPE_CHECKING:
    from mirrorless.metadata.passes import Pass
    from mirrorless.settings import Flow


def discover_topics(flow: Flow, *, admins: Admins | None = None) -> Pass:
    """Create missing remote topics and partitions, and the progress topic."""
    return _pass(flow, Part.TOPICS, admins)


def sync_configs(flow: Flow) -> Pass:
    """Give remote topics the configs of their source topics."""
    return _pass(flow, Part.CONFIGS)


def sync_acls(flow: Flow) -> Pass:
    """Give remote topics the ACLs of their source topics."""
    return _pass(flow, Part.ACLS)


def _pass(flow: Flow, part: Part, admins: Admins | None = None) -> Pass:
    admins = admins or Admins.of(flow)
    with closing(CopiedTopics(flow, admins)) as copied:
        return one_pass(flow, [part], admins=admins, copied=copied)

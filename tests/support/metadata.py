"""Single passes over one part of the metadata each, as the functions make them."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from mirrorless.metadata.planning import Admins, Part
from mirrorless.metadata.sync_pass import one_pass
from mirrorless.progress.copied_topics import CopiedTopics

if TYPE_CHECKING:
    from mirrorless.metadata.sync_pass import SyncPass
    from mirrorless.settings import Flow


def discover_topics(flow: Flow, *, admins: Admins | None = None) -> SyncPass:
    """Create missing remote topics and partitions, and the progress topic."""
    return _pass(flow, Part.TOPICS, admins)


def sync_configs(flow: Flow) -> SyncPass:
    """Give remote topics the configs of their source topics."""
    return _pass(flow, Part.CONFIGS)


def sync_acls(flow: Flow) -> SyncPass:
    """Give remote topics the ACLs of their source topics."""
    return _pass(flow, Part.ACLS)


def _pass(flow: Flow, part: Part, admins: Admins | None = None) -> SyncPass:
    admins = admins or Admins.of(flow)
    with closing(CopiedTopics(flow, admins)) as copied:
        return one_pass(flow, [part], admins=admins, copied=copied)

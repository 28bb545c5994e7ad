"""topic_discovery, config_sync and acl_sync: one sync run of one part of the metadata each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mirrorless.copy.api import StartPositions
from mirrorless.functions.client_cache import ClientCache
from mirrorless.functions.events import ScheduleEvent
from mirrorless.metadata.actions import ForgetAcl
from mirrorless.metadata.planning import Admins, Part, switched_on
from mirrorless.metadata.sync_pass import one_pass
from mirrorless.progress.copied_topics import CopiedTopics
from mirrorless.progress.source_notes import starts_at_latest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mirrorless.functions.invocation import Invocation
    from mirrorless.settings import Flow

_METRICS: Final = {
    Part.TOPICS: ("topics-created", "topics-failed"),
    Part.CONFIGS: ("configs-changed", "configs-failed"),
    Part.ACLS: ("acls-changed", "acls-failed"),
}


class _Clients(NamedTuple):
    """Clients of both ends, and the content of the progress topic."""

    admins: Admins
    copied: CopiedTopics

    @classmethod
    def of(cls, flow: Flow) -> _Clients:
        admins = Admins.of(flow)
        return cls(admins, CopiedTopics(flow, admins))

    def close(self) -> None:
        self.copied.close()


_clients: Final[dict[Part, ClientCache[_Clients]]] = {part: ClientCache(_Clients.close) for part in Part}
"""The cluster ids are queried at every sync run."""


_starts: Final[ClientCache[StartPositions]] = ClientCache(StartPositions.close)


def discover_topics(invocation: Invocation) -> dict[str, Any]:
    """Create missing remote topics and partitions.

    If `refresh.topics.enabled` is false only a manual invocation does: topics are discovered once, at the start.
    """
    event, flow = invocation.event, invocation.flow
    by_hand = isinstance(event, ScheduleEvent) and event.by_hand
    if not (flow.refresh_topics_enabled or by_hand):
        return _pass(invocation, Part.TOPICS, wanted=())
    # Before topics are created: the copy begins with them within seconds. At the first run the progress topic, which
    # stores where they begin, does not exist yet.
    if not starts_at_latest(flow):
        return _pass(invocation, Part.TOPICS, wanted=[Part.TOPICS])
    with _starts.kept(flow.name, flow, lambda: StartPositions(flow)) as starts:
        fixed = starts.fix()
        answer = _pass(invocation, Part.TOPICS, wanted=[Part.TOPICS])
        fixed = fixed or starts.fix()
    if fixed is not None and fixed.problem is not None:
        invocation.sink.tell("warning", fixed.problem)
    return answer


def sync_configs(invocation: Invocation) -> dict[str, Any]:
    """Set on remote topics the configs of their source topics."""
    on = switched_on(invocation.flow)[Part.CONFIGS]
    return _pass(invocation, Part.CONFIGS, wanted=[Part.CONFIGS] if on else ())


def sync_acls(invocation: Invocation) -> dict[str, Any]:
    """Add to remote topics the ACLs of their source topics, and to the target the kinds that are synced."""
    on = switched_on(invocation.flow)
    return _pass(invocation, Part.ACLS, wanted=[part for part in (Part.ACLS, Part.KINDS) if on[part]])


def _pass(invocation: Invocation, part: Part, *, wanted: Sequence[Part]) -> dict[str, Any]:
    """Sync the parts that are wanted, which a function does for `part`."""
    if not wanted:
        return {"note": f"{part.value} are disabled in the configuration"}
    flow = invocation.flow
    with _clients[part].kept(flow.name, (flow.source, flow.target), lambda: _Clients.of(flow)) as clients:
        admins, copied = clients
        found = one_pass(flow, wanted, admins=admins, copied=copied, stopping=invocation.budget.is_used_up)
    if found.failures or found.problems:
        _clients[part].forget(flow.name)  # an expired login fails actions, not the sync run
    invocation.sink.discovered(found)
    changed, failed = _METRICS[part]
    done = [one for one in found.applied if one.error is None and not isinstance(one.action, ForgetAcl)]
    invocation.measure(changed, len(done))
    invocation.measure(failed, len(found.failures) + len(found.problems))
    left = [f"{type(action).__name__} {action.topic}" for action in found.left]
    return {
        "changed": len(done),
        "failed": len(found.failures),
        "problems": len(found.problems),
        **invocation.leave(left),
    }

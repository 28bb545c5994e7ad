"""Follows the groups of a flow in a thread, beside the copy."""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Literal

from mirrorless.clusters import outages
from mirrorless.errors import ClusterError, MirrorlessError
from mirrorless.group_sync.follower import GroupFollower

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mirrorless.group_sync.follower import FollowReport
    from mirrorless.settings import Flow

FOLLOWER: Final = "groups"
"""The name of the thread."""
ENDS_S: Final = 2.0
"""A follower that waits for a cluster which does not answer is left behind: what it writes then does no harm."""
_PAUSE_S: Final = 5.0
_log = logging.getLogger(__name__)
_followers: dict[str, tuple[Flow, GroupFollower]] = {}
"""Kept by flow: a function that is invoked again does not read the topics from their beginnings."""
_lock: Final = threading.Lock()


def follows(flow: Flow) -> bool:
    """Whether group offsets of a flow are committed on the target, and so followed."""
    return flow.sync_group_offsets_enabled and flow.writes_checkpoints


@contextmanager
def following(
    flow: Flow,
    tell: Callable[[Literal["info", "warning", "error"], str], None] | None = None,
    *,
    measured: Callable[[FollowReport], None] = lambda _report: None,
) -> Iterator[None]:
    """Follow the groups of a flow for as long as the context lasts.

    `tell` gets the level and the text of a line; without it lines are logged. `measured` gets the report of each step.
    """
    ended = threading.Event()
    thread = threading.Thread(target=follow, args=(flow, tell or _logged, measured, ended), name=FOLLOWER, daemon=True)
    if follows(flow):
        thread.start()
    try:
        yield
    finally:
        ended.set()
        if thread.ident is not None:
            thread.join(ENDS_S)


def follow(
    flow: Flow,
    tell: Callable[[Literal["info", "warning", "error"], str], None],
    measured: Callable[[FollowReport], None],
    ended: threading.Event,
) -> None:
    """Follow the groups of a flow until `ended` is set; after an error, from scratch."""
    said = ""
    while not ended.is_set():
        outages.wait(flow, stopping=ended.is_set)
        kept = _taken(flow)
        try:
            follower = GroupFollower(flow) if kept is None else kept
            kept = follower
            follower.begin()
            while not ended.is_set() and not outages.any_away():
                if follower.why_asking is not None and follower.why_asking != said:
                    said = follower.why_asking
                    tell("info", f"{flow.name} asks for the offsets of groups every second: {said}")
                measured(follower.step())
            if ended.is_set():
                follower.pause()
                _keep(flow, follower)
                return
        except ClusterError as error:
            if error.cluster is None or not outages.suspect(error.cluster):
                tell("warning", f"group offsets are not followed at the moment: {error}; checkpoint runs continue")
        except MirrorlessError as error:
            tell("error", f"group offsets are not followed: {error}; checkpoint runs continue")
        except Exception as error:  # noqa: BLE001 -- also of a custom filter: it would end the thread, not the copy
            tell("error", f"group offsets are not followed: {type(error).__name__}: {error}")
        if kept is not None:
            kept.close()
        ended.wait(_PAUSE_S)


def _logged(level: str, text: str) -> None:
    _log.log(logging.getLevelNamesMapping()[level.upper()], text)


def _taken(flow: Flow) -> GroupFollower | None:
    """Return the follower that is kept for a flow; one of other settings is closed."""
    with _lock:
        known = _followers.pop(flow.name, None)
    if known is None or known[0] == flow:
        return None if known is None else known[1]
    known[1].close()
    return None


def _keep(flow: Flow, follower: GroupFollower) -> None:
    with _lock:
        before = _followers.pop(flow.name, None)
        _followers[flow.name] = flow, follower
    if before is not None:
        before[1].close()

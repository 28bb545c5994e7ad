"""What this process knows of topics, without asking: those that clusters have, and those that flows have copied.

It settles which of two topics has a name that the rules of `mirrorless.topics.rename` give to both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from mirrorless.settings import Flow

_seen: Final[dict[str, dict[str, int]]] = {}
"""By the addresses of a cluster: its topics, each with the number of topic lists that came before its first one."""
_lists: Final[dict[str, int]] = {}
_copied: Final[dict[tuple[str, str, str], frozenset[str]]] = {}


def note_topics(servers: str, topics: Collection[str]) -> None:
    """Replace what is known of the topics of the cluster at these addresses."""
    known = _seen.get(servers)
    if known is None:
        _seen[servers] = dict.fromkeys(topics, 0)
    elif known.keys() != set(topics):
        number = _lists[servers] = _lists.get(servers, 0) + 1
        _seen[servers] = {topic: known.get(topic, number) for topic in topics}


def topics_of(servers: str) -> Mapping[str, int]:
    """Return the topics of a cluster; those that appeared later have a larger number. Empty if nothing is known."""
    return _seen.get(servers, {})


def note_copied(flow: Flow, topics: Iterable[str]) -> None:
    """Replace what is known of the topics that a flow has copied, by its progress."""
    _copied[_key(flow)] = frozenset(topics)


def copied_by(flow: Flow) -> frozenset[str]:
    """Return the topics that a flow has copied, as far as is known."""
    return _copied.get(_key(flow), frozenset())


def forget() -> None:
    """Forget everything."""
    for known in (_seen, _lists, _copied):
        known.clear()


def _key(flow: Flow) -> tuple[str, str, str]:
    return flow.source.bootstrap_servers, flow.target.bootstrap_servers, flow.offset_storage_topic

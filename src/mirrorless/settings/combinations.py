"""Settings that exclude each other, or cancel each other's effect.

`MODES` is the table of the modes in docs/modes.md: each line is a combination that cannot be. What a flow's modes
amount to, with its policy, is in `modes`.
"""

from __future__ import annotations

import re
from itertools import combinations
from typing import TYPE_CHECKING, Final, NamedTuple

from mirrorless.settings.key_normalizer import addresses
from mirrorless.settings.patterns import compile_patterns
from mirrorless.settings.references import refers
from mirrorless.settings.replication_cycles import reached_from
from mirrorless.settings.vocabulary import EARLIER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mirrorless.settings.cluster import Cluster
    from mirrorless.settings.model import Flow
    from mirrorless.settings.precedence import Found

DIRECTIONS: Final = "mirrorless.both.directions"
SEPARATOR: Final = "replication.policy.separator"
RENAME: Final = "mirrorless.topics.rename"
_ACTIVE: Final = "mirrorless.active.cluster"
_OFFSETS: Final = "mirrorless.offsets"
_SYNC: Final = "sync.topic.configs.enabled"
_PROTOCOL: Final = "security.protocol"
_OF_SECURED: Final = ("sasl.mechanism", "sasl.jaas.config", "ssl.truststore.", "ssl.keystore.")
_PLAIN: Final = re.compile(r"[\w.-]+")
_ISOLATION: Final = "consumer.isolation.level"
_DEFAULT: Final = "DefaultReplicationPolicy"
_IDENTITY: Final = "IdentityReplicationPolicy"


class Excluded(NamedTuple):
    """A combination that cannot be: the setting to change, when, and why; `{back}` is the flow in the other direction.

    `applies` gets a flow that is part of a circle, and the flow in the other direction, if there is one.
    """

    key: str
    applies: Callable[[Flow, Flow | None], bool]
    reason: str


MODES: Final = (
    Excluded(
        _ACTIVE,
        lambda flow, _: _may_keep(flow) and flow.directions == "skip" and flow.active_cluster is not None,
        f"both directions copy at the same time with {DIRECTIONS}=skip; remove one of the two settings",
    ),
    Excluded(
        _ACTIVE,
        lambda flow, _: _may_keep(flow) and flow.both_directions == "refuse" and flow.active_cluster is not None,
        f"has an effect with {DIRECTIONS}=turns only; set that, or remove this setting",
    ),
    Excluded(
        DIRECTIONS,
        lambda flow, back: (
            back is not None
            and flow.both_directions == "turns"
            and _may_keep(flow)
            and _may_keep(back)
            and not _have_turns(flow, back)
        ),
        f"{{back}} takes turns with it only if both have this setting, and the same {_ACTIVE}: the one of the two "
        "clusters that applications write to",
    ),
    Excluded(
        _OFFSETS,
        lambda flow, _: flow.offsets == "identical" and flow.directions == "skip",
        f"records that {DIRECTIONS}=skip does not copy would be holes; remove one of the two settings",
    ),
    Excluded(
        RENAME,
        lambda flow, _: bool(flow.topics_rename) and flow.directions == "skip" and _may_keep(flow),
        f"with {DIRECTIONS}=skip both clusters have to have the same topic names; remove one of the two settings",
    ),
    Excluded(
        _OFFSETS,
        lambda flow, back: (
            back is not None
            and _may_keep(flow)
            and flow.active_cluster is not None
            and bool(_same_offsets(flow))
            and _same_offsets(flow) != _same_offsets(back)
        ),
        f"{{back}} takes turns with it ({_ACTIVE}), and has to keep the offsets of the same topics: set {_OFFSETS} and "
        f"{_OFFSETS}.identical.topics for both",
    ),
)


class SettingRefusal(NamedTuple):
    """Why the setting `key` of a flow cannot be used."""

    flow: str
    key: str
    reason: str


def refused_combinations(flows: Sequence[Flow]) -> Iterator[SettingRefusal]:
    """Yield what cannot be: the combinations of `MODES`, flows that set the configs of the same topics, and rules."""
    for flow in flows:
        back = next((one for one in flows if (one.source, one.target) == (flow.target, flow.source)), None)
        if back is not None and flow.topics_rename and back.topics_rename and flows.index(back) < flows.index(flow):
            reason = (
                f"{back.name} has rules too, and the way back has their inverse by itself; set {RENAME} for one of "
                f"the two flows only, as in {back.name}.{RENAME}"
            )
            yield SettingRefusal(flow.name, RENAME, reason)
        for one in MODES if flow.circle else ():
            if one.applies(flow, back):
                yield SettingRefusal(flow.name, one.key, one.reason.format(back="" if back is None else back.name))
    skipping = [one for one in flows if one.circle and one.directions == "skip" and _may_keep(one)]
    syncing = [flow for flow in skipping if flow.sync_topic_configs_enabled]
    for flow in syncing:
        other = next((one for one in syncing if one is not flow and _contradicts(one, flow, syncing)), None)
        if other is not None and flows.index(other) < flows.index(flow):
            reason = (
                f"{other.name} syncs configs of the same topics, and each would undo what the other does; set "
                f"{flow.name}.{_SYNC}=false, so that one cluster's topic configs are those of all"
            )
            yield SettingRefusal(flow.name, _SYNC, reason)


def implied_turns(flows: Sequence[Flow]) -> Iterator[str]:
    """Yield one warning if flows take turns without saying so, as earlier files do."""
    names = [
        one.name for one in flows if one.both_directions is None and any(_have_turns(one, it) for it in one.circle)
    ]
    if names:
        yield f"{', '.join(names)}: {_ACTIVE} alone is read as {DIRECTIONS}=turns; set that too"


def is_earlier_default(setting: Found | None) -> bool:
    """Whether this is the earlier `mirrorless.loops=refuse`, with which flows with an active cluster take turns."""
    if setting is None or setting.value.lower() != "refuse":
        return False
    return (setting.entry.written or "").endswith(tuple(EARLIER))


def _may_keep(flow: Flow) -> bool:
    """Whether remote topics may have the names of their source topics; of a custom policy that is not known here."""
    return not flow.replication_policy_class.strip().endswith(_DEFAULT)


def _have_turns(flow: Flow, other: Flow) -> bool:
    """Whether two flows are a pair that takes turns, if their policies keep names."""
    ends = {flow.source.alias, flow.target.alias}
    pair = {other.source.alias, other.target.alias} == ends and flow.active_cluster in ends
    same = flow.active_cluster == other.active_cluster and flow.directions == other.directions == "turns"
    return pair and same and _may_keep(flow) and _may_keep(other)


def _same_offsets(flow: Flow) -> frozenset[str]:
    return frozenset(flow.offsets_identical_topics) if flow.offsets == "identical" else frozenset()


def _contradicts(one: Flow, other: Flow, syncing: Sequence[Flow]) -> bool:
    """Whether two flows set configs of one cluster's topics, or lead in a circle."""
    back = other.source.alias in reached_from(other.target.alias, syncing)
    return back or one.target.alias == other.target.alias


def contradictions(flow: Flow) -> Iterator[str]:
    """Yield one warning for each; the flow can run."""
    if flow.source.client.get(_ISOLATION, "").strip().lower() == "read_uncommitted":
        yield (
            f"{flow.name}: {_ISOLATION}=read_uncommitted has no effect: records of aborted transactions are never "
            "copied, and records after an open transaction are copied once it ends"
        )
    if flow.writes_checkpoints:
        return
    reason = "emit.checkpoints.enabled=false"
    if flow.emit_checkpoints_enabled:
        reason = "emit.offset-syncs.enabled=false"
        yield (
            f"{flow.name}: {reason}: offsets cannot be translated, so no checkpoints are written; set "
            "emit.checkpoints.enabled=false too if this is intended"
        )
    if flow.sync_group_offsets_enabled:
        yield f"{flow.name}: sync.group.offsets.enabled=true has no effect with {reason}"


def unnamed_source(flow: Flow) -> str | None:
    """Return why the separator of a flow cannot be empty; None if it is not, or if its policy keeps topic names."""
    name = flow.replication_policy_class.strip().rpartition(".")[2]
    if flow.replication_policy_separator or name != _DEFAULT:
        return None
    return (
        f"must not be empty with {_DEFAULT}, whose topic names would not show where the alias {flow.source.alias} "
        f"ends; to keep topic names, set replication.policy.class to {_IDENTITY}"
    )


def rivalries(flows: Sequence[Flow]) -> Iterator[str]:
    """Yield one warning for each flow that reverts what others do to the same remote topics."""
    for flow in flows:
        others = [one.name for one in flows if one is not flow and one.target.alias == flow.target.alias and _adds(one)]
        if flow.acls_prune and _adds(flow) and others:
            yield (
                f"{flow.name}: mirrorless.acls.prune=true removes an ACL that is gone from {flow.source.alias}, "
                f"though {', '.join(others)} may have added it for a topic of the same name; {flow.target.alias} "
                "lacks the ACL until the next sync run of that flow; set mirrorless.acls.prune=false"
            )


def shared_topics(flows: Sequence[Flow]) -> Iterator[str]:
    """Yield one warning for each two flows that may write one remote topic, because both keep topic names."""
    keeping = [
        one for one in flows if one.replication_policy_class.strip().endswith(_IDENTITY) and one.directions != "skip"
    ]
    for one, other in combinations(keeping, 2):
        common = _common_topics(one, other) if one.target.alias == other.target.alias else None
        if common is not None:
            yield (
                f"{one.name} and {other.name} keep topic names and select {common}: a topic of both sources is one "
                f"topic on {one.target.alias}, with the records of both, and a consumer group of both sources "
                "continues there at the earlier of its two positions; select each topic in one of the two, or use "
                "DefaultReplicationPolicy, to have them apart"
            )


def _common_topics(one: Flow, other: Flow) -> str | None:
    """Return the names, or else the words, for what both flows may select; None if they cannot have a topic in common.

    A list of plain names is compared by name; of two patterns it is not known whether a topic matches both.
    """
    for names, patterns in ((one, other), (other, one)):
        if all(map(_PLAIN.fullmatch, names.topics)):
            selects = _selects(patterns)
            found = [name for name in names.topics if selects(name) and _selects(names)(name)]
            return ", ".join(found) or None
    return "topics by patterns"


def _selects(flow: Flow) -> Callable[[str], bool]:
    included, excluded = compile_patterns(flow.topics), compile_patterns(flow.topics_exclude)
    return lambda name: any(p.fullmatch(name) for p in included) and not any(p.fullmatch(name) for p in excluded)


def ambiguous_aliases(flows: Sequence[Flow]) -> Iterator[str]:
    """Yield one warning for each alias that contains the separator of one of its flows."""
    said: set[tuple[str, str]] = set()
    for flow in flows:
        separator = flow.replication_policy_separator
        for alias in (flow.source.alias, flow.target.alias):
            if separator and separator in alias and (alias, separator) not in said:
                said.add((alias, separator))
                yield (
                    f"{flow.name}: alias {alias} contains the separator {separator} (replication.policy.separator): "
                    f"{alias}{separator}t is read as a topic of {alias} by this file's flows, and as a topic of "
                    f"{alias.split(separator)[0] or 'no cluster'} by MirrorMaker 2's clients and by flows of files "
                    "that do not list the alias; use another separator or another alias"
                )


def unused_logins(clusters: Sequence[Cluster]) -> Iterator[str]:
    """Yield one warning for each cluster with a login or certificates, but without a security protocol."""
    for cluster in clusters:
        unused = next((key for key in cluster.client if key.startswith(_OF_SECURED)), None)
        if unused is not None and not cluster.client.get(_PROTOCOL, "").strip():
            protocols = "SASL_SSL or SASL_PLAINTEXT" if unused.startswith("sasl.") else "SSL or SASL_SSL"
            yield (
                f"{cluster.alias}.{unused}: has no effect, because {_PROTOCOL} is PLAINTEXT by default; set "
                f"{cluster.alias}.{_PROTOCOL} to {protocols}"
            )


def shared_addresses(clusters: Sequence[Cluster]) -> Iterator[str]:
    """Yield one warning for each pair of aliases that have a broker's address in common."""
    for one, other in combinations(clusters, 2):
        common = _addresses(one) & _addresses(other)
        if common:
            yield (
                f"aliases {one.alias} and {other.alias} have the same address {min(common)}; if they are one cluster, "
                "use one alias: a flow between them does not start, and flows from both replicate each topic twice"
            )


def _addresses(cluster: Cluster) -> set[str]:
    if refers(cluster.bootstrap_servers):
        return set()
    return {address.lower() for address in addresses(cluster.bootstrap_servers)}


def _adds(flow: Flow) -> bool:
    return flow.sync_topic_acls_enabled and flow.replication_policy_class.endswith(_IDENTITY)

"""Explains a key, with any prefix and in any accepted spelling: type, default and meaning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mirrorless.errors import ConfigurationError
from mirrorless.settings.client_keys import (
    ARCHIVE,
    CLUSTER_ID,
    COMMON_CLIENT_KEYS,
    CONSUMER_KEYS,
    PRODUCER_KEYS,
    ROLE_PREFIXES,
)
from mirrorless.settings.client_meanings import CLIENT_MEANINGS
from mirrorless.settings.field_docs import default_of, kind_of, meaning_of
from mirrorless.settings.model import FLOW_KEYS, SOURCE_CLIENT_KEYS, WORKER_KEYS
from mirrorless.settings.properties import ARROW
from mirrorless.settings.unsupported_keys import foreign
from mirrorless.settings.vocabulary import flow_vocabulary, top_vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterator

_CLIENT_PREFIXES: Final = tuple(
    sorted(
        [f"{side}{role}" for side in ("source.", "target.", "") for role in (*ROLE_PREFIXES, "cluster.")]
        + [f"{role}override." for role in ROLE_PREFIXES],
        key=len,
        reverse=True,
    )
)


@dataclass(frozen=True, slots=True)
class Explanation:
    """One setting. `where` says with which prefixes it may be set; `default` is None if there is none."""

    key: str
    kind: str
    default: str | None
    meaning: str
    where: str

    @property
    def row(self) -> str:
        """The row of docs/configuration.md."""
        default = "" if self.default is None else self.default if self.default == "required" else f"`{self.default}`"
        return f"| `{self.key}` | {default} | {self.meaning.removesuffix('.')} |".replace("|  |", "| |")


# Keys that are neither a flow's nor the worker's, but define the clusters and the flows.
_MAKING: Final = (
    Explanation("clusters", "list", "required", "The aliases of the clusters.", "at top level"),
    Explanation(
        "<alias>.bootstrap.servers",
        "list of host:port",
        "required",
        "Bootstrap servers of this cluster; required for a flow.",
        "after an alias, or at top level for all",
    ),
    Explanation(
        "<source>-><target>.enabled",
        "true or false",
        "false",
        "Whether this flow runs; `enabled` without a flow is for all flows.",
        "after a flow, or at top level for all",
    ),
    Explanation(
        f"<alias>.{CLUSTER_ID}",
        "text",
        None,
        "Name of this cluster in place of the id that it reports, to confirm that two clusters which were "
        "formatted with the same id differ. Producer ids and records of added ACLs are derived from it: set it before "
        "the first record is copied.",
        "after an alias",
    ),
    Explanation(
        f"<alias>.{ARCHIVE}",
        "s3://bucket/prefix or file:///folder",
        None,
        "Where this cluster's batches are archived, in place of its bootstrap servers: a flow to it archives, a flow "
        "from it restores.",
        "after an alias",
    ),
)


def explanations() -> Iterator[Explanation]:
    """Yield every setting that has an effect on flows, in the order of docs/configuration.md."""
    yield from _MAKING
    for keys, before, where in (
        (FLOW_KEYS, "", "at top level for all flows, or as <source>-><target>.{key}, which wins"),
        (WORKER_KEYS, "", "at top level, which wins, or as <target>.{key}"),
        (
            SOURCE_CLIENT_KEYS,
            "<source>.",
            "after the source's alias, or as <source>-><target>.source.{key}, which wins",
        ),
    ):
        for key, field in keys.items():
            yield Explanation(
                f"{before}{key}", kind_of(field), default_of(field), meaning_of(field), where.format(key=key)
            )


def client_explanations() -> Iterator[Explanation]:
    """Yield every supported client setting."""
    for key, (kind, default, meaning) in CLIENT_MEANINGS.items():
        yield Explanation(key, kind, default, meaning, "after an alias; ssl, sasl and security also at top level")


def explain(key: str) -> Explanation:
    """Explain one key; raises ConfigurationError, with the nearest known key, for a key that is not known."""
    wanted = key.strip()
    known = {one.key: one for one in (*explanations(), *client_explanations())}
    if wanted in known:
        return known[wanted]
    bare = wanted.rpartition(ARROW)[2]
    for name in (bare, bare.partition(".")[2]) if ARROW not in wanted else (bare.partition(".")[2],):
        found = _explained(name, known)
        if found is not None:
            return found
    close = top_vocabulary(FLOW_KEYS, WORKER_KEYS).suggestion(bare)
    raise ConfigurationError(f"no such setting{f'; did you mean {close}?' if close else ''}", key=wanted)


def _explained(name: str, known: dict[str, Explanation]) -> Explanation | None:
    reading = flow_vocabulary([*FLOW_KEYS, *WORKER_KEYS]).read(name) or top_vocabulary(FLOW_KEYS, WORKER_KEYS).read(
        name
    )
    key = name if reading is None else reading.key
    made = {"enabled": 2, "bootstrap.servers": 1, CLUSTER_ID: 3, ARCHIVE: 4}
    if key in made:
        return _MAKING[made[key]]
    if key.endswith(tuple(SOURCE_CLIENT_KEYS)):
        return next(known[f"<source>.{one}"] for one in SOURCE_CLIENT_KEYS if key.endswith(one))
    client = next((key[len(prefix) :] for prefix in _CLIENT_PREFIXES if key.startswith(prefix)), key)
    if key in known or client in known:
        return known.get(key) or known[client]
    if client in COMMON_CLIENT_KEYS | CONSUMER_KEYS | PRODUCER_KEYS and (client != key or client in COMMON_CLIENT_KEYS):
        return Explanation(client, "any", None, "Only tunes Java's clients; accepted without effect.", "after a role")
    other = foreign(key)
    if other is not None:
        effect = "Refused" if other.severity == "error" else "Accepted without effect"
        return Explanation(key, "any", None, f"{effect}: {other.reason}.", "as in MirrorMaker 2")
    return None

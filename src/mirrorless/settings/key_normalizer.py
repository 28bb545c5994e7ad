"""Corrects the spelling of keys and values, with a warning for each correction.

MirrorMaker 2 ignores a key that it does not know, so that a mistake shows months later; here it is read as
it was meant if there is exactly one meaning, and reported if there is none.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from mirrorless.settings.client_keys import BOOTSTRAP_SERVERS
from mirrorless.settings.comments import without_comment
from mirrorless.settings.impossible_patterns import never_in_a_name
from mirrorless.settings.masking import MASK, is_secret, shown, shown_name
from mirrorless.settings.patterns import compile_patterns, split_list, tidy_patterns, unquoted
from mirrorless.settings.properties import ARROW
from mirrorless.settings.references import refers
from mirrorless.settings.unsupported_keys import foreign
from mirrorless.settings.value_forms import ValueForm, form_of, is_unset_if_empty
from mirrorless.settings.vocabulary import (
    CLUSTER_ALIASES,
    EARLIER,
    OWN_PREFIX,
    cluster_vocabulary,
    flow_vocabulary,
    top_vocabulary,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from mirrorless.settings.properties import PropertyEntry
    from mirrorless.settings.vocabulary import Vocabulary

CLUSTERS: Final = "clusters"
EXCLUDED_TOPICS: Final = "topics.exclude"
"""Set twice, it is an error: what the first line excludes would be copied."""

_UNKNOWN: Final = "is not known and has no effect"
_HARMLESS: Final = re.compile(r"[0-9]{1,9}|true|false", re.IGNORECASE)
_QUOTES: Final = {'"': '"', "'": "'", "\u201c": "\u201d", "\u2018": "\u2019"}
_HOST_AND_PORT: Final = re.compile(
    r"(?:[\w%.-]*://)?(?P<address>(?:\[[0-9A-Fa-f:%.]+\]|[\w%.-]+):[0-9]{1,5})", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Key:
    """A key split into its scope (a flow `A->B`, a cluster's alias, or empty) and the setting."""

    scope: str
    setting: str

    @property
    def full(self) -> str:
        """The key as it should be written."""
        return f"{self.scope}.{self.setting}" if self.scope else self.setting


@dataclass(frozen=True, slots=True)
class Tidied:
    """Entries by their correct keys, in the order of the file, the aliases, and a line for each correction."""

    entries: Mapping[str, PropertyEntry]
    aliases: tuple[str, ...]
    warnings: tuple[str, ...]


class KeyNormalizer:
    """Knows the keys of flows and of the worker."""

    def __init__(self, *, flow_keys: Collection[str], worker_keys: Collection[str]) -> None:
        self._worker_keys = worker_keys
        self._top = top_vocabulary(flow_keys, worker_keys)
        self._flow = flow_vocabulary(flow_keys)
        self._cluster = cluster_vocabulary(worker_keys)

    def tidy(self, written: Mapping[str, PropertyEntry]) -> Tidied:
        """Correct keys and values."""
        warnings: list[str] = []
        aliases = _aliases(written)
        tidied: dict[str, PropertyEntry] = {}
        exact: set[str] = set()
        for name, entry in written.items():
            key, value, remarks = self._read(name, entry.value.strip(), aliases)
            remarks += self._repeated(key, entry) + self._without_backslash(key, entry)
            if key.full == CLUSTERS:
                value, remarks = _tidy_clusters(value, remarks, aliases)
            if not value and self._is_known(key) and is_unset_if_empty(key.setting):
                if key.setting in self._worker_keys or foreign(key.setting) is None:
                    warnings.append(_remark(name, entry, "is empty, which is read as not set", right=key.full))
                continue
            if key.full != name and key.full in exact:
                remarks = [f"is ignored, because {key.full} is set too"]
            else:
                if key.full == name:
                    exact.add(name)
                if (previous := tidied.pop(key.full, None)) is not None and previous.written:
                    told = f"is ignored, because {name} is set too"
                    warnings.append(_remark(previous.written, previous, told, right=key.full))
                tidied[key.full] = replace(
                    entry, value=value, written=entry.written or (name if key.full != name else None)
                )
            warnings += [_remark(name, entry, remark, right=key.full) for remark in remarks]
        return Tidied(tidied, aliases, tuple(warnings))

    def _read(self, name: str, value: str, aliases: tuple[str, ...]) -> tuple[Key, str, list[str]]:
        key = take_apart(name, aliases)
        remarks: list[str] = []
        if key.setting.startswith(OWN_PREFIX):
            if key.setting in EARLIER:
                key = replace(key, setting=EARLIER[key.setting])
                remarks.append(f"is the earlier name of {key.full}; rename it")
            value = _uncommented(key, value, remarks)
            return key, _without_quotes(key, value)[0], remarks
        reading = self._vocabulary(key).read(key.setting)
        if reading is None:
            return key, value, [self._unknown(key, aliases)]
        right = Key(key.scope, reading.key)
        value = _uncommented(right, value, remarks)
        if reading.ms_per_unit is not None:
            seconds = reading.in_seconds(unquoted(value))
            if seconds is None:
                return right, value, [f"is in another unit; write {right.full}, in seconds"]
            remarks.append(f"read as {right.full}={seconds}, which is in seconds")
            return right, seconds, remarks
        if right.full != name:
            remarks.append(f"read as {right.full}")
        value, more = self._tidy_value(right, value)
        return right, value, remarks + more

    def _repeated(self, key: Key, entry: PropertyEntry) -> list[str]:
        """Return a remark if the file sets a known key twice to different values."""
        if entry.earlier is None or key.setting == EXCLUDED_TOPICS or not self._is_known(key):
            return []
        return [f"line {entry.earlier.line} sets another value, which has no effect; remove one of the two"]

    def _without_backslash(self, key: Key, entry: PropertyEntry) -> list[str]:
        """Return a remark if the properties format dropped the backslash of an escape in a pattern."""
        if not entry.dropped or form_of(key.setting) is not ValueForm.PATTERNS:
            return []
        first = entry.dropped[0]
        if first == "\\.":
            return ["a properties file reads \\. as a dot, which matches any character; write [.] for a dot"]
        return [f"a properties file reads {first} as {first[1:]}; write \\{first}"]

    def _tidy_value(self, key: Key, value: str) -> tuple[str, list[str]]:
        if refers(value) or key.full == CLUSTERS:
            return value, []
        if form_of(key.setting) is ValueForm.PATTERNS:
            value, remarks = tidy_patterns(value)
            return value, [*remarks, *(_without_match(value) if key.setting == "topics" else ())]
        if key.setting.endswith(BOOTSTRAP_SERVERS):
            return _tidy_servers(value)
        return _without_quotes(key, value)

    def _vocabulary(self, key: Key) -> Vocabulary:
        return self._flow if ARROW in key.scope else self._cluster if key.scope else self._top

    def _is_known(self, key: Key) -> bool:
        return key.setting.startswith(OWN_PREFIX) or self._vocabulary(key).read(key.setting) is not None

    def _unknown(self, key: Key, aliases: tuple[str, ...]) -> str:
        if key.scope and ARROW not in key.scope and self._flow.read(key.setting) is not None:
            other = next((alias for alias in aliases if alias != key.scope), "B")
            return f"has no effect, because it is a setting of flows; write {key.scope}{ARROW}{other}.{key.setting}"
        close = self._vocabulary(key).suggestion(key.setting)
        advice = f"; did you mean {Key(key.scope, close).full}?" if close else ""
        return f"{_UNKNOWN}{advice}"


def take_apart(name: str, aliases: tuple[str, ...]) -> Key:
    """Split a key into scope and setting; the case of aliases matters only if they differ in nothing else."""
    if name in CLUSTER_ALIASES:
        return Key("", name)
    source, arrow, rest = name.partition(ARROW)
    if arrow and "." in rest:
        target = _leading_alias(rest, aliases) or rest.partition(".")[0]
        return Key(f"{_alias(source, aliases)}{ARROW}{_alias(target, aliases)}", rest[len(target) + 1 :])
    if not arrow and (alias := _leading_alias(name, aliases)):
        return Key(_alias(alias, aliases), name[len(alias) + 1 :])
    return Key("", name)


def _leading_alias(name: str, aliases: tuple[str, ...]) -> str | None:
    exact = [alias for alias in aliases if name.startswith(f"{alias}.")]
    loose = [alias for alias in aliases if name.lower().startswith(f"{alias.lower()}.")]
    found = max(exact or loose, key=len, default=None)
    return None if found is None else name[: len(found)]


def _alias(written: str, aliases: tuple[str, ...]) -> str:
    if written in aliases:
        return written
    alike = [alias for alias in aliases if alias.lower() == written.lower()]
    return alike[0] if len(alike) == 1 else written


def _aliases(written: Mapping[str, PropertyEntry]) -> tuple[str, ...]:
    name = next((name for name in written if name.strip().lower() in (CLUSTERS, "cluster")), None)
    name = CLUSTERS if CLUSTERS in written else name
    if name is None:
        return ()
    parts = re.split(r"[,;\s]+", without_comment(written[name].value.strip())[0].strip("[]"))
    return tuple(alias for part in parts if (alias := unquoted(part)))


def _tidy_clusters(value: str, remarks: list[str], aliases: tuple[str, ...]) -> tuple[str, list[str]]:
    plain = tuple(alias for part in value.split(",") if (alias := part.strip()))
    listed = ", ".join(aliases)
    return (value, remarks) if plain == aliases else (listed, [*remarks, f"read as {listed}"])


def _tidy_servers(value: str) -> tuple[str, list[str]]:
    parts = _parts(value)
    if not parts:
        return value, []
    tidied = ",".join(addresses(value))
    plain = [part for raw in value.split(",") if (part := raw.strip())]
    # A listener's name in front is accepted by Java, too.
    return tidied, [] if plain == parts else [f"read as {tidied}"]


def _parts(servers: str) -> list[str]:
    return [part for raw in re.split(r"[,;\s]+", servers) if (part := unquoted(raw))]


def addresses(servers: str) -> tuple[str, ...]:
    """Return the brokers of a list in any spelling, without quotes and protocols."""
    return tuple(match["address"] if (match := _HOST_AND_PORT.fullmatch(part)) else part for part in _parts(servers))


def without_port(servers: str) -> str | None:
    """Return the first of comma-separated addresses that is not host:port, None if all are."""
    for part in servers.split(","):
        match = _HOST_AND_PORT.fullmatch(part.strip())
        if match is None or not 0 < int(match["address"].rpartition(":")[2]) < 2**16:
            return part.strip()
    return None


def _without_quotes(key: Key, value: str) -> tuple[str, list[str]]:
    if len(value) < 2 or _QUOTES.get(value[0]) != value[-1]:
        return value, []
    inner = value[1:-1].strip()
    if is_secret(key.setting):
        # A password may begin and end with quotes; a login configuration never does.
        return (inner, ["quotes are ignored"]) if key.setting.endswith("jaas.config") else (value, [])
    if value[-1] in inner:
        return value, []
    return inner, ["quotes are ignored"]


def _uncommented(key: Key, value: str, remarks: list[str]) -> str:
    """Return the value without a comment, of which a remark is added."""
    if form_of(key.setting) is ValueForm.TEXT:
        return value
    plain, comment = without_comment(value)
    if comment is not None:
        remarks.append(f"read as {plain}: Java's properties have no comments after values; move it to a separate line")
    return plain


def _without_match(patterns: str) -> Iterator[str]:
    for pattern in split_list(patterns):
        with contextlib.suppress(ValueError):  # a pattern that does not compile is an error later
            compile_patterns([pattern])
            if (sign := never_in_a_name(pattern)) is not None:
                yield f"{pattern!r} matches no topic, because topic names cannot have {sign!r}"


def _remark(name: str, entry: PropertyEntry, remark: str, *, right: str) -> str:
    name = shown_name(entry.written or name)
    if name == MASK:
        return (
            f"{entry.place}: {name}: looks like a part of a PEM text, whose lines, except the last, must end in \\n\\"
        )
    if remark.startswith(_UNKNOWN) and not entry.value.strip() and "." not in name:
        # One word alone on its line, which may be the rest of a secret whose line was not continued.
        return f"{entry.place}: {MASK}: {_UNKNOWN}"
    # A key that resembles no setting may hold a secret under any name.
    hidden = is_secret(right) or (remark == _UNKNOWN and _HARMLESS.fullmatch(entry.value.strip()) is None)
    value = MASK if hidden else shown(name, entry.value.strip())
    return f"{entry.place}: {name}={value}: {remark}"

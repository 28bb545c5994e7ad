"""The form of each setting's value, which decides what may be corrected in it: quotes, comments, an empty value."""

from __future__ import annotations

from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Final

from mirrorless.settings.client_keys import BOOTSTRAP_SERVERS, CLUSTER_ID
from mirrorless.settings.client_meanings import CLIENT_MEANINGS
from mirrorless.settings.field_docs import kind_of
from mirrorless.settings.masking import is_secret
from mirrorless.settings.model import FLOW_KEYS, SOURCE_CLIENT_KEYS, WORKER_KEYS
from mirrorless.settings.values import ACL_PATTERNS, PATTERNS, RENAMES, TEXT
from mirrorless.settings.vocabulary import CLUSTER_ALIASES

if TYPE_CHECKING:
    from collections.abc import Mapping

_CLUSTERS: Final = "clusters"
_PREFIXES: Final = tuple(
    f"{side}{role}"
    for side in ("source.", "target.", "")
    for role in ("cluster.", "consumer.", "producer.", "admin.", "producer.override.", "")
)
# An empty value is not the default: nothing between alias and topic, no check of host names.
_MEANS_EMPTY: Final = frozenset(
    ["replication.policy.separator", "ssl.endpoint.identification.algorithm", "mirrorless.progress.alias", CLUSTER_ID]
)


class ValueForm(Enum):
    """A list, of patterns or other elements; one word, such as a number, a boolean or one of several words; or text."""

    PATTERNS = "patterns"
    LIST = "list"
    WORD = "word"
    TEXT = "text"


def form_of(setting: str) -> ValueForm:
    """Return the form of a setting's value; the setting is without alias or flow, in its correct spelling."""
    return _bare(setting) or ValueForm.TEXT


def is_unset_if_empty(setting: str) -> bool:
    """Whether an empty value means that the setting has its default: in an empty list, there is nothing instead."""
    name = setting.rpartition("cluster.")[2] if setting.startswith(("source.", "target.")) else setting
    if setting in CLUSTER_ALIASES:
        return False
    if name in _MEANS_EMPTY or name.endswith((".password", *_MEANS_EMPTY)):
        return False
    return form_of(setting) in (ValueForm.WORD, ValueForm.TEXT) or is_secret(setting)


def _bare(setting: str) -> ValueForm | None:
    forms = _forms()
    if setting in forms:
        return forms[setting]
    return next((forms[rest] for one in _PREFIXES if one and (rest := _after(setting, one)) in forms), None)


def _after(setting: str, prefix: str) -> str:
    return setting.removeprefix(prefix) if setting.startswith(prefix) else ""


@cache
def _forms() -> Mapping[str, ValueForm]:
    found = {_CLUSTERS: ValueForm.LIST, BOOTSTRAP_SERVERS: ValueForm.LIST, "enabled": ValueForm.WORD}
    for key, field in {**FLOW_KEYS, **WORKER_KEYS, **SOURCE_CLIENT_KEYS}.items():
        words = kind_of(field)
        lists = {
            PATTERNS.words: ValueForm.PATTERNS,
            ACL_PATTERNS.words: ValueForm.LIST,
            RENAMES.words: ValueForm.LIST,
            TEXT.words: ValueForm.TEXT,
        }
        found[key] = lists.get(words, ValueForm.WORD)
    for key, (kind, _, _) in CLIENT_MEANINGS.items():
        words_of = {"whole number": ValueForm.WORD, "true or false": ValueForm.WORD, "list": ValueForm.LIST}
        found[key] = words_of.get(kind, ValueForm.TEXT)
    return found

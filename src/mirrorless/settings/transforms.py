"""What the single message transforms of a flow do, for the error that they are not supported.

Source: `org.apache.kafka.connect.transforms` of Kafka 4.3, and Confluent's transforms.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from mirrorless.settings.masking import shown
from mirrorless.settings.patterns import split_list

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mirrorless.settings.properties import PropertyEntry

TRANSFORMS: Final = "transforms"
_DOES: Final = {
    "Cast": "changes the type of fields",
    "Drop": "removes key or value",
    "DropHeaders": "removes headers",
    "ExtractField": "keeps one field only",
    "ExtractTopic": "names the topic by a field",
    "Filter": "drops records",
    "Flatten": "flattens nested fields",
    "HeaderFrom": "moves fields into headers",
    "HoistField": "wraps the value in a field",
    "InsertField": "adds fields",
    "InsertHeader": "adds a header",
    "MaskField": "masks fields",
    "MessageTimestampRouter": "names the topic by the time of the record",
    "RegexRouter": "renames topics",
    "ReplaceField": "removes or renames fields",
    "SetSchemaMetadata": "changes the name of the schema",
    "TimestampConverter": "converts timestamps",
    "TimestampRouter": "names the topic by the time of the record",
    "TombstoneHandler": "drops tombstones",
    "ValueToKey": "makes the key of fields of the value",
}
_CLASS: Final = re.compile(r"(?:[A-Za-z_]\w*\.)*([A-Za-z_]\w*)(?:\$\w+)?")


def refusal(entries: Mapping[str, PropertyEntry], key: str) -> str:
    """Return why the transforms that `key` (`transforms`, `A->B.transforms`) lists are refused, with what each does."""
    scope = key.removesuffix(TRANSFORMS)
    listed = ", ".join(_one(entries, scope, name) for name in split_list(entries[key].value))
    return (
        f"{listed}: records are copied unchanged, so no transformation can change or drop them; remove it, or leave "
        "this flow to MirrorMaker 2, which can run beside Mirrorless for the other flows"
    )


def _one(entries: Mapping[str, PropertyEntry], scope: str, name: str) -> str:
    type_key = next((key for one in (scope, "") if (key := f"{one}{TRANSFORMS}.{name}.type") in entries), None)
    found = None if type_key is None else _CLASS.fullmatch(entries[type_key].value.strip())
    shown_alias = shown(TRANSFORMS, name)
    if found is None:
        return f"{shown_alias} has no class"
    return f"{shown_alias} ({found[1]}) {_DOES.get(found[1], 'is a custom class')}"

"""What the single message transforms of a flow do, for the error that they are not supported.

One that renames topics, `RegexRouter`, is read as `mirrorless.topics.rename`, where that gives the same names.

Source: `org.apache.kafka.connect.transforms` of Kafka 4.3, and Confluent's transforms.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from mirrorless.settings import precedence
from mirrorless.settings.masking import shown
from mirrorless.settings.patterns import split_list
from mirrorless.settings.rename_rules import parse_rules

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mirrorless.settings.properties import PropertyEntry

TRANSFORMS: Final = "transforms"
RENAME: Final = "mirrorless.topics.rename"
_ROUTER: Final = "org.apache.kafka.connect.transforms.RegexRouter"
_OF_FLOW: Final = re.compile(r"(?P<flow>(?P<source>[^>]+)->[^.>]+)\.transforms")
_ANY_DOT: Final = re.compile(r"(?<!\\)(?:\\\\)*\.")
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


def routed(
    entries: Mapping[str, PropertyEntry],
) -> tuple[Mapping[str, PropertyEntry], Mapping[str, str]]:
    """Read each flow's only transform, if it is a `RegexRouter`, as its `mirrorless.topics.rename`.

    Returns the entries with that, and by the key of transforms why it gives other names than any rule.
    """
    found, reasons = dict(entries), dict[str, str]()
    for key in entries:
        of_flow = _OF_FLOW.fullmatch(key)
        names = split_list(entries[key].value) if of_flow else ()
        if of_flow is None or len(names) != 1:
            continue
        scope = f"{key}.{names[0]}."
        of_router = {one.removeprefix(scope): entry for one, entry in entries.items() if one.startswith(scope)}
        if "type" not in of_router or of_router["type"].value.strip() != _ROUTER:
            continue
        flow = of_flow["flow"]
        try:
            if precedence.flow_setting(entries, RENAME, flow=flow) is not None:
                raise ValueError(f"{RENAME} is set too; remove one of the two")
            rule = _rule(entries, of_router, flow=flow, source=of_flow["source"])
        except ValueError as error:
            reasons[key] = (
                f"{names[0]} (RegexRouter) cannot be read as {RENAME}: {error}; set {flow}.{RENAME} instead, which is "
                "applied before the replication policy"
            )
            continue
        for one in (key, *(f"{scope}{name}" for name in of_router)):
            del found[one]
        found[f"{flow}.{RENAME}"] = replace(of_router["regex"], value=rule, written=f"{scope}regex", dropped=())
    return found, reasons


def _rule(
    entries: Mapping[str, PropertyEntry], of_router: Mapping[str, PropertyEntry], *, flow: str, source: str
) -> str:
    """Return the rule with the same names; raises ValueError with the reason if there is none."""
    if more := of_router.keys() - {"type", "regex", "replacement"}:
        raise ValueError(f"it has {min(more)}, so it is applied to some records only")
    if lacking := {"regex", "replacement"} - of_router.keys():
        raise ValueError(f"it has no {min(lacking)}")
    regex, name = of_router["regex"].value.strip(), of_router["replacement"].value.strip()
    policy = precedence.flow_setting(entries, "replication.policy.class", flow=flow)
    if policy is None or policy.value.strip().endswith("DefaultReplicationPolicy"):
        separator = precedence.flow_setting(entries, "replication.policy.separator", flow=flow)
        prefix = f"{source}{'.' if separator is None else separator.value}"
        starts = (re.escape(prefix), prefix.replace(".", r"\."), prefix.replace(".", "[.]"))
        start = next((one for one in starts if regex.startswith(one)), None)
        if start is None or not name.startswith(prefix):
            raise ValueError(
                f"it sees names with the prefix {prefix}, and regex and replacement have to begin with it "
                f"({prefix.replace('.', chr(92) + '.')} and {prefix}); to copy without the prefix, set "
                "replication.policy.class=IdentityReplicationPolicy"
            )
        regex, name = regex.removeprefix(start), name.removeprefix(prefix)
    elif not policy.value.strip().endswith("IdentityReplicationPolicy"):
        raise ValueError(f"it sees the names of {policy.value.strip()}, which are not known here")
    if "," in regex or "," in name:
        raise ValueError("it has a comma, which separates rules")
    if any(_ANY_DOT.search(part) for part in _outside_groups(regex)):
        raise ValueError(r"a '.' outside a group matches any character; write '\.'")
    rule = f"{regex} -> {name}"
    parse_rules(rule)
    return rule


def _outside_groups(regex: str) -> list[str]:
    """Return the parts of an expression that are in no group, and in no class such as `[.]`."""
    text = re.sub(r"\[\^?\]?(?:\\.|[^\]\\])*\]", "", regex)
    while (inner := re.sub(r"(?<!\\)\((?:\\.|[^()\\])*\)", "\n", text)) != text:
        text = inner
    return text.split("\n")

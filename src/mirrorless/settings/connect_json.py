"""Reads connector configurations, as posted to Connect's REST interface.

Accepted: one connector (`{"name": ..., "config": {...}}`, or its settings alone, as for `PUT .../config`), a list of
connectors, the response of `GET /connectors?expand=info` (`{"<name>": {"info": {...}}}`), also with `expand=status`,
and Amazon MSK Connect's (`aws kafkaconnect create-connector` and `describe-connector`), which has the settings in
`connectorConfiguration`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from mirrorless.errors import ConfigurationError
from mirrorless.settings.connectors import called, connector_of, line, text_of
from mirrorless.settings.masking import shown_field
from mirrorless.settings.properties import PropertyEntry

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mirrorless.settings.connectors import Connector

_MSK_CONNECT: Final = "connectorConfiguration"
_NOT_RUNNING: Final = ("PAUSED", "STOPPED")


class _RepeatedKeyError(ValueError):
    """A key that an object has twice."""


def is_json(text: str) -> bool:
    """Whether a text can only be JSON: no setting begins like this."""
    return text.lstrip().startswith(("{", "["))


def parsed(text: str, *, file: str) -> object:
    """Parse JSON; raises ConfigurationError without any of the text."""
    try:
        value: object = json.loads(text, object_pairs_hook=_without_repetition)
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ConfigurationError("has half of a character, such as \\ud800", file=file) from None
    except json.JSONDecodeError as error:
        raise ConfigurationError(f"is not JSON at line {error.lineno}: {error.msg}", file=file) from None
    except _RepeatedKeyError as error:
        reason = "an object sets this key twice to different values; remove one of the two"
        raise ConfigurationError(reason, file=file, key=str(error)) from None
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"is not JSON that can be read: {type(error).__name__}", file=file) from None
    return value


def _without_repetition(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, one in pairs:
        # Keys such as "//" and "_comment" are comments.
        if name in found and found[name] != one and name[:1].isalpha():
            raise _RepeatedKeyError(shown_field(name))
        found[name] = one
    return found


def read_json(value: object, *, file: str) -> tuple[list[Connector], list[str]]:
    """Return the connectors of a parsed file, and warnings about the others."""
    connectors: list[Connector] = []
    warnings = [*_not_running(value, file=file)]
    for name, settings in _found(value, file=file):
        where = f"{file}: connector {called(name)}"
        texts = {
            key.strip(): text
            for key, one in settings.items()
            if (text := text_of(one, key=key, where=where)) is not None
        }
        place = f"{file}#{called(name)}"
        entries = {key: PropertyEntry(text, 0, place, key) for key, text in texts.items()}
        connector = connector_of(name, entries, file=file, where=where)
        if connector is None:
            warnings.append(f"{where}: ignored, not a connector of MirrorMaker 2")
        else:
            connectors.append(connector)
    return connectors, warnings


def _found(value: object, *, file: str) -> Iterator[tuple[str | None, Mapping[str, Any]]]:
    """Yield the names, if any, and settings of connectors, for every accepted structure of the file."""
    if isinstance(value, list):
        for number, one in enumerate(value, start=1):
            if not isinstance(one, dict):
                raise ConfigurationError(f"element {number} of the list is not a connector", file=file)
            yield from _found(one, file=file)
    elif not isinstance(value, dict):
        raise ConfigurationError("is not a connector", file=file)
    elif isinstance(value.get("config"), dict):
        config = value["config"]
        yield _name(value) or _name(config), config
    elif isinstance(value.get(_MSK_CONNECT), dict):
        config = value[_MSK_CONNECT]
        name = value.get("connectorName")
        yield (line(str(name)) if name else _name(config)), config
    elif "connector.class" in value:
        yield _name(value), value
    elif value and all(isinstance(one, dict) for one in value.values()):
        for name, one in value.items():
            inner = one.get("info", one)
            if not isinstance(inner, dict) or not ({"config", "connector.class"} & inner.keys()):
                raise ConfigurationError("has no settings; request it with ?expand=info", file=file, key=line(name))
            yield from _found({"name": name, "config": inner.get("config", inner)}, file=file)
    else:
        raise ConfigurationError('is not a connector: it has neither "connector.class" nor "config"', file=file)


def _not_running(value: object, *, file: str) -> Iterator[str]:
    """Yield a warning for each connector that Connect has paused or stopped, as `expand=status` shows."""
    for name, one in value.items() if isinstance(value, dict) else ():
        status = one.get("status") if isinstance(one, dict) else None
        connector = status.get("connector") if isinstance(status, dict) else None
        state = connector.get("state") if isinstance(connector, dict) else None
        if state in _NOT_RUNNING:
            yield (
                f"{file}: connector {line(name)}: is {state} on Connect, which has no effect here; to start without "
                "copying, use mirrorless pause"
            )


def _name(fields: Mapping[str, Any]) -> str | None:
    name = fields.get("name")
    return line(str(name)) if name else None

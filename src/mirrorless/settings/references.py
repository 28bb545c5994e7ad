"""References to values stored elsewhere, in Kafka's own syntax: `${provider:path:key}` (KIP-297).

    ${env:NAME}  ${file:/path:key}  ${directory:/path:name}  ${secretsmanager:id:key}  ${ssm:/path}
    ${secret:/path/of.yaml:name/key}, a Kubernetes Secret in a file, which Kafka does not have
    ${directory:/path:*.crt}, all matching files joined by line ends, which Kafka does not have either

They stay as they are in everything that is loaded, shown or sent to workers, and are resolved only when a client is
created, by the process that creates it.
"""

from __future__ import annotations

import json
import os
import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mirrorless.errors import ConfigurationError
from mirrorless.settings.aws import client
from mirrorless.settings.kubernetes_secrets import secret_value
from mirrorless.settings.locations import read
from mirrorless.settings.masking import MASK
from mirrorless.settings.properties import parse

if TYPE_CHECKING:
    from collections.abc import Callable

_REFERENCE: Final = re.compile(r"\$\{([A-Za-z][\w.-]*)(?:@([\w-]+))?:([^}]*)\}")

_GLOB: Final = re.compile(r"[*?\[]")
# What shells and templates replace, and Kafka leaves as it is.
_PLACEHOLDER: Final = re.compile(r"\$\{[A-Za-z_][\w.-]*\}")

# Java's providers, by the class in `config.providers.<name>.class`, without its package.
CLASSES: Final = {
    "EnvVarConfigProvider": "env",
    "FileConfigProvider": "file",
    "DirectoryConfigProvider": "directory",
    "SecretsManagerConfigProvider": "secretsmanager",
    "SsmParamStoreConfigProvider": "ssm",
}


class _WrongFormError(ValueError):
    """A reference that names no provider, or is not of its provider's form."""


def refers(text: str) -> bool:
    """Whether a text contains a reference."""
    return _REFERENCE.search(text) is not None


def placeholder(text: str, *, secret: bool) -> str | None:
    """Return the first `${NAME}` of a text, which names no provider; its name is masked if it may be part of a secret.

    In a secret it is named where it is the whole value or the whole quoted option of a login.
    """
    for match in _PLACEHOLDER.finditer(text):
        return match[0] if not secret or _stands_alone(match) else f"${{{MASK}}}"
    return None


def undeclared(text: str, *, secret: bool, known: Callable[[str], bool]) -> str | None:
    """Return the first provider of a text that is not known; masked if it may be part of a secret."""
    for match in _REFERENCE.finditer(text):
        if not known(match[1]):
            return match[1] if not secret or _stands_alone(match) else MASK
    return None


def _stands_alone(match: re.Match[str]) -> bool:
    before, after = match.string[: match.start()].rstrip(), match.string[match.end() :].lstrip()
    return before[-1:] in ("", '"', "'", "=") and after[:1] in ("", '"', "'", ";")


def without_references(text: str) -> str:
    """Return a text without its references."""
    return _REFERENCE.sub("", text)


def providers(text: str) -> list[tuple[str, str]]:
    """Return the provider and the rest of every reference in a text."""
    return [(match[1], match[3]) for match in _REFERENCE.finditer(text)]


def rename(text: str, names: dict[str, str]) -> str:
    """Replace the names of providers."""
    return _REFERENCE.sub(
        lambda match: (
            "${" + names.get(match[1], match[1]) + (f"@{match[2]}" if match[2] else "") + f":{match[3]}" + "}"
        ),
        text,
    )


def resolve(text: str, *, key: str, file: str | None = None) -> str:
    """Return the text with every reference replaced by its value.

    Raises ConfigurationError, without any value, for an unknown provider or a value that cannot be read.
    """

    def value_of(match: re.Match[str]) -> str:
        provider, region, rest = match[1], match[2], match[3]
        lookup = _LOOKUPS.get(provider)
        try:
            if lookup is None:
                raise _WrongFormError(f"unknown config provider; known: {', '.join(_LOOKUPS)}")
            return lookup(rest, region)
        except _WrongFormError as error:
            # What is not a reference of this form may be a part of a secret.
            raise ConfigurationError(str(error), file=file, key=key, value=f"${{{provider}:***}}") from None
        except ValueError as error:
            raise ConfigurationError(str(error), file=file, key=key, value=match[0]) from None

    return _REFERENCE.sub(value_of, text)


def _environment(rest: str, region: str | None) -> str:  # noqa: ARG001 -- all lookups have the same signature
    name = rest.rpartition(":")[2]
    if name not in os.environ:
        raise ValueError(f"environment variable {name} is not set; set it for this process")
    return os.environ[name]


def _file(rest: str, region: str | None) -> str:  # noqa: ARG001 -- all lookups have the same signature
    path, colon, key = rest.rpartition(":")
    if not colon or not path or not key:
        raise _WrongFormError("must be ${file:path:key}")
    entries = parse(_text(path), file=path)
    if key not in entries:
        raise ValueError(f"{path} has no key {key}")
    return entries[key].value


def _directory(rest: str, region: str | None) -> str:  # noqa: ARG001 -- all lookups have the same signature
    folder, colon, name = rest.rpartition(":")
    if not colon or not folder or not name or "/" in name:
        raise _WrongFormError("must be ${directory:path:name}")
    if not _GLOB.search(name) or Path(folder, name).is_file():
        return _text(f"{folder}/{name}")
    return "\n".join(_text(f"{folder}/{one}").strip() for one in _matching(folder, name))


def _matching(folder: str, pattern: str) -> list[str]:
    """Return the files of a folder that match a glob; names with a leading dot are Kubernetes' own."""
    try:
        names = sorted(one.name for one in Path(folder).iterdir() if not one.name.startswith("."))
    except OSError as error:
        raise ValueError(f"{folder} cannot be read: {error.strerror or error}") from None
    found = [name for name in names if fnmatchcase(name, pattern)]
    if not found:
        raise ValueError(f"{folder} has no file that matches {pattern}")
    return found


def _kubernetes(rest: str, region: str | None) -> str:  # noqa: ARG001 -- all lookups have the same signature
    path, colon, name = rest.rpartition(":")
    if not colon or not path or "/" not in name:
        raise _WrongFormError("must be ${secret:path:name/key}")
    try:
        text = read(path)
    except ConfigurationError as error:
        raise ValueError(str(error)) from None
    return secret_value(text, *name.split("/", 1), file=path)


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8") from None
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _secrets_manager(rest: str, region: str | None) -> str:
    secret, key = secret_of(rest)
    region = region or (secret.split(":")[3] if secret.startswith("arn:") else None)
    with client("secretsmanager", region=region) as manager:
        text = str(manager.get_secret_value(SecretId=secret).get("SecretString", ""))
    if not key:
        return text
    try:
        fields = json.loads(text)
    except ValueError:
        fields = None
    if not isinstance(fields, dict) or key not in fields:
        raise ValueError(f"the secret has no key {key}")
    return str(fields[key])


def secret_of(rest: str) -> tuple[str, str]:
    """Return a secret's name or ARN and the key in it, which may be empty, of `${secretsmanager:rest}`."""
    # An ARN has six colons itself, and may also be written with %3A as Amazon's provider requires.
    secret, _, key = rest.replace("%3A", ":").rpartition(":") if _has_key(rest) else (rest, "", "")
    return secret.replace("%3A", ":"), key


def _has_key(rest: str) -> bool:
    plain = rest.replace("%3A", ":")
    return plain.count(":") > 6 if plain.startswith("arn:") else ":" in plain


def _parameter_store(rest: str, region: str | None) -> str:
    name = rest.removeprefix(":")
    with client("ssm", region=region) as store:
        return str(store.get_parameter(Name=name, WithDecryption=True)["Parameter"]["Value"])


_LOOKUPS: Final[dict[str, Callable[[str, str | None], str]]] = {
    "env": _environment,
    "file": _file,
    "directory": _directory,
    "secretsmanager": _secrets_manager,
    "ssm": _parameter_store,
    "secret": _kubernetes,
}
BUILT_IN: Final = tuple(_LOOKUPS)

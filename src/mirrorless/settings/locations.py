"""Where a configuration is stored: on disk, in S3 (`s3://bucket/key`) or in the SSM parameter store (`ssm:/name`).

`s3://bucket/key?versionId=ID` and `ssm:/name:3` are one version of it, which never changes.

A location is one string, because it is sent to Spark's workers: several files are `files:a.json,b.json`, a
MirrorMaker 1 is `mirrormaker1:consumer.config=C&producer.config=P&include=a%7Cb`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote

from mirrorless.errors import ConfigurationError
from mirrorless.settings.aws import client

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

SEVERAL: Final = "files:"
_LARGEST_BYTES: Final = 16 << 20
_VERSION: Final = "?versionId="
_versions: Final[dict[str, str]] = {}
"""The version that was read last, by location."""


def together(locations: Sequence[str | PathLike[str]]) -> str:
    """Return one location for one or several files."""
    texts = [str(location) for location in locations]
    return texts[0] if len(texts) == 1 else SEVERAL + ",".join(quote(text, safe="/:") for text in texts)


def apart(location: str) -> tuple[str, ...]:
    """Return the files of a location."""
    if not location.startswith(SEVERAL):
        return (location,)
    return tuple(unquote(part) for part in location.removeprefix(SEVERAL).split(","))


def version_of(location: str) -> str | None:
    """Return the version of a location that this process read last; None where its store has no versions."""
    return _versions.get(location)


def read(location: str) -> str:
    """Read a UTF-8 text; raises ConfigurationError if this is not possible."""
    try:
        return _read(location).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"is not UTF-8 at byte {error.start}", file=location) from None
    except OSError as error:
        raise ConfigurationError(f"cannot be read: {error.strerror or error}", file=location) from None
    except ValueError as error:
        raise ConfigurationError(f"cannot be read: {error}", file=location) from None


def _read(location: str) -> bytes:
    if location.startswith("s3://"):
        bucket, _, rest = location.removeprefix("s3://").partition("/")
        key, _, version = rest.partition(_VERSION)
        if not bucket or not key:
            raise ValueError("must be s3://bucket/key")
        with client("s3", region=None) as s3:
            answer = s3.get_object(Bucket=bucket, Key=key, **({"VersionId": version} if version else {}))
            _note_version(location, answer.get("VersionId"))
            return bytes(answer["Body"].read(_LARGEST_BYTES))
    if location.startswith("ssm:"):
        # The whole ARN; a name may begin with one or two slashes, as in ssm://name.
        name = location.removeprefix("ssm:")
        name = name[1:] if name.startswith("//") else name
        with client("ssm", region=name.split(":")[3] if name.startswith("arn:") else None) as store:
            parameter = store.get_parameter(Name=name, WithDecryption=True)["Parameter"]
            _note_version(location, parameter.get("Version"))
            return str(parameter["Value"]).encode()
    return Path(location).read_bytes()


def _note_version(location: str, version: object) -> None:
    if version in (None, "null"):  # a bucket without versions
        _versions.pop(location, None)
    else:
        _versions[location] = str(version)

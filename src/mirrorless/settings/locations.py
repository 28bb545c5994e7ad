"""Where a configuration is stored: on disk, in S3 (`s3://bucket/key`) or in the SSM parameter store (`ssm:/name`).

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


def together(locations: Sequence[str | PathLike[str]]) -> str:
    """Return one location for one or several files."""
    texts = [str(location) for location in locations]
    return texts[0] if len(texts) == 1 else SEVERAL + ",".join(quote(text, safe="/:") for text in texts)


def apart(location: str) -> tuple[str, ...]:
    """Return the files of a location."""
    if not location.startswith(SEVERAL):
        return (location,)
    return tuple(unquote(part) for part in location.removeprefix(SEVERAL).split(","))


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
        bucket, _, key = location.removeprefix("s3://").partition("/")
        if not bucket or not key:
            raise ValueError("must be s3://bucket/key")
        with client("s3", region=None) as s3:
            return bytes(s3.get_object(Bucket=bucket, Key=key)["Body"].read(_LARGEST_BYTES))
    if location.startswith("ssm:"):
        # The whole ARN; a name may begin with one or two slashes, as in ssm://name.
        name = location.removeprefix("ssm:")
        name = name[1:] if name.startswith("//") else name
        with client("ssm", region=name.split(":")[3] if name.startswith("arn:") else None) as store:
            return str(store.get_parameter(Name=name, WithDecryption=True)["Parameter"]["Value"]).encode()
    return Path(location).read_bytes()

"""Writes, lists and reads reports as files, on disk or in S3; needs no other package."""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mirrorless.settings.aws import client

if TYPE_CHECKING:
    from collections.abc import Iterator

_S3: Final = "s3://"
_LONGEST_BYTES: Final = 16 << 20


def write(location: str, content: bytes) -> None:
    """Write a file, on disk or at `s3://bucket/key`; raises `OSError`, with the error of S3."""
    if location.startswith(_S3):
        bucket, key = _in_s3(location)
        # pyarrow's own S3 client queries the bucket's region and existence: rights that nothing else here needs.
        with _s3(f"writing {location}") as s3:
            s3.put_object(Bucket=bucket, Key=key, Body=content)
        return
    Path(location).parent.mkdir(parents=True, exist_ok=True)
    Path(location).write_bytes(content)


def folders(location: str) -> list[str]:
    """Return the names of the folders in a folder, on disk or at `s3://bucket/prefix`; none if it does not exist.

    Raises `OSError`, with the error of S3.
    """
    if location.startswith(_S3):
        bucket, key = _in_s3(location)
        prefix = f"{key.rstrip('/')}/"
        with _s3(f"listing {location}") as s3:
            pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix, Delimiter="/")
            found = [one["Prefix"] for page in pages for one in page.get("CommonPrefixes", ())]
        return [one.removeprefix(prefix).rstrip("/") for one in found]
    try:
        return [one.name for one in os.scandir(location) if one.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return []


def read(location: str) -> bytes:
    """Return the content of a file, on disk or at `s3://bucket/key`.

    Raises `OSError`: with the error of S3, for a file above 16 MiB, and on disk for a symbolic link or a device.
    """
    if location.startswith(_S3):
        bucket, key = _in_s3(location)
        with _s3(f"reading {location}") as s3:
            body = s3.get_object(Bucket=bucket, Key=key)["Body"]
            content: bytes = body.read(_LONGEST_BYTES + 1)
            body.close()
    else:
        with os.fdopen(os.open(location, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise OSError(f"{location}: is not a file")
            content = file.read(_LONGEST_BYTES + 1)
    if len(content) > _LONGEST_BYTES:
        raise OSError(f"{location}: has more than {_LONGEST_BYTES} bytes")
    return content


def _in_s3(location: str) -> tuple[str, str]:
    bucket, _, key = location.removeprefix(_S3).partition("/")
    return bucket, key


@contextmanager
def _s3(doing: str) -> Iterator[Any]:
    """Yield a client of S3 whose errors become `OSError`."""
    try:
        with client("s3", region=None) as s3:
            yield s3
    except ValueError as error:
        raise OSError(f"{doing} failed: {error}") from None

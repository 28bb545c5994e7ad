"""Writes a report as a file, on disk or in S3; needs no other package."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from mirrorless.settings.aws import client

_S3: Final = "s3://"


def write(location: str, content: bytes) -> None:
    """Write a file, on disk or at `s3://bucket/key`; raises `OSError`, with the error of S3."""
    if location.startswith(_S3):
        bucket, _, key = location.removeprefix(_S3).partition("/")
        # pyarrow's own S3 client queries the bucket's region and existence: rights that nothing else here needs.
        try:
            with client("s3", region=None) as s3:
                s3.put_object(Bucket=bucket, Key=key, Body=content)
        except ValueError as error:
            raise OSError(f"writing {location} failed: {error}") from None
        return
    Path(location).parent.mkdir(parents=True, exist_ok=True)
    Path(location).write_bytes(content)

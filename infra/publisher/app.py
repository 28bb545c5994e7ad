"""Puts what the Glue jobs need, and what lies beside this file, into the bucket when the stack is deployed.

A custom resource, because `sam deploy` uploads a Glue job's script and nothing else of it, and gives what it uploads
names without an ending, by which Glue would not know what the file is. A resource names its files by a pattern; their
keys have a hash of all of them, so a run that is under way keeps its own: it may start workers for as long as it lasts,
which is until Glue's weekly maintenance at most.
"""

from __future__ import annotations

import hashlib
import json
import urllib.request
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import boto3
from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from collections.abc import Iterator

_FOLDER: Final = Path(__file__).parent
_PREFIX: Final = "environments/"
_KEPT_FOR: Final = timedelta(days=14)


def handler(event: dict[str, Any], context: Any) -> None:  # noqa: ANN401 -- Lambda's context
    """Publish on Create and Update, remove on Delete, and tell CloudFormation which of them went how."""
    # The same whatever is published: with another one CloudFormation would have the old one's files removed at once.
    key = event.get("PhysicalResourceId", event["LogicalResourceId"])
    answer: dict[str, Any] = {"Status": "SUCCESS"}
    try:
        answer["Data"] = _carry_out(event)
    except Exception as error:  # noqa: BLE001 -- without an answer CloudFormation waits for an hour
        print(f"{event['RequestType']} of {key} failed: {error!r}")  # noqa: T201 -- the function's log
        answer |= {"Status": "FAILED", "Reason": f"{error!r}; the log is {context.log_group_name}"}
    same = {name: event[name] for name in ("StackId", "RequestId", "LogicalResourceId")}
    request = urllib.request.Request(  # noqa: S310 -- CloudFormation's own, to S3
        event["ResponseURL"],
        data=json.dumps(answer | same | {"PhysicalResourceId": key}).encode(),
        method="PUT",
        headers={"Content-Type": ""},
    )
    urllib.request.urlopen(request, timeout=30).close()  # noqa: S310


def _carry_out(event: dict[str, Any]) -> dict[str, str]:
    """Publish, and remove what was published long ago; or remove everything."""
    bucket, pattern = event["ResourceProperties"]["Bucket"], event["ResourceProperties"]["Files"]
    s3 = boto3.client("s3")
    if event["RequestType"] == "Delete":
        for key, _ in _published(s3, bucket, pattern):
            s3.delete_object(Bucket=bucket, Key=key)
        return {}
    files = sorted(_FOLDER.glob(pattern))
    if not files:
        raise FileNotFoundError(pattern)
    digest = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    keys = [f"{_PREFIX}{digest.hexdigest()[:16]}/{path.name}" for path in files]
    for path, name in zip(files, keys, strict=True):
        s3.upload_file(str(path), bucket, name)
    there = list(_published(s3, bucket, pattern))
    for key, since in there:
        replaced = min((at for other, at in there if at >= since and _folder(other) != _folder(key)), default=None)
        if key not in keys and replaced is not None and datetime.now(UTC) - replaced > _KEPT_FOR:
            s3.delete_object(Bucket=bucket, Key=key)
    return {"Location": ",".join(f"s3://{bucket}/{name}" for name in keys)}


def _published(s3: Any, bucket: str, pattern: str) -> Iterator[tuple[str, datetime]]:  # noqa: ANN401 -- boto3's client
    """Yield keys of files of this pattern, and since when they are there; none where there is no bucket."""
    try:
        for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=_PREFIX):
            for one in page.get("Contents", ()):
                if fnmatchcase(one["Key"].rsplit("/", 1)[1], pattern):
                    yield one["Key"], one["LastModified"]
    except ClientError as error:
        if error.response["Error"]["Code"] != "NoSuchBucket":
            raise


def _folder(key: str) -> str:
    return key.rsplit("/", 1)[0]

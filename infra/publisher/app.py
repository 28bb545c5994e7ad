"""Puts what the Glue jobs need, and what lies beside this file, into the bucket when the stack is deployed.

A custom resource, because `sam deploy` uploads a Glue job's script and nothing else of it, and gives what it uploads
names without an ending, by which Glue would not know what the file is. A resource names its files by a pattern; their
keys have a hash of all of them, so a run that is under way keeps its own.
"""

from __future__ import annotations

import hashlib
import json
import urllib.request
from pathlib import Path
from typing import Any, Final

import boto3

_FOLDER: Final = Path(__file__).parent
_NONE: Final = "nothing-published"


def handler(event: dict[str, Any], context: Any) -> None:  # noqa: ANN401 -- Lambda's context
    """Publish on Create and Update, remove on Delete, and tell CloudFormation which of them went how."""
    key = event.get("PhysicalResourceId", _NONE)
    answer: dict[str, Any] = {"Status": "SUCCESS"}
    try:
        key, answer["Data"] = _carry_out(event, key)
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


def _carry_out(event: dict[str, Any], key: str) -> tuple[str, dict[str, str]]:
    """Return the keys, which are the resource's id: when that changes, CloudFormation deletes the old one at last."""
    bucket = event["ResourceProperties"]["Bucket"]
    s3 = boto3.client("s3")
    if event["RequestType"] == "Delete":
        for one in key.split() if key != _NONE else ():
            s3.delete_object(Bucket=bucket, Key=one)
        return key, {}
    files = sorted(_FOLDER.glob(event["ResourceProperties"]["Files"]))
    if not files:
        raise FileNotFoundError(event["ResourceProperties"]["Files"])
    digest = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    keys = [f"environments/{digest.hexdigest()[:16]}/{path.name}" for path in files]
    for path, name in zip(files, keys, strict=True):
        s3.upload_file(str(path), bucket, name)
    return " ".join(keys), {"Location": ",".join(f"s3://{bucket}/{name}" for name in keys)}

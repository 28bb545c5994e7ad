"""The custom resource `Custom::MirrorlessRelease`: copies what the Glue jobs need into the bucket at each deployment.

`sam deploy` gives a job's script a name without an ending, in a bucket that roles would have to guess, and uploads
nothing else of a job. So the Python environment, the scripts and the jars are in `release/` beside this file, and are
copied to keys below a hash of all of them. A run that is under way keeps its files: it may start workers until it ends.

Flows of other stacks keep the release and the layer that they were deployed with, until they are deployed again. So
what was replaced is removed two weeks later, and only if no Glue job names the release, and no function the layer.
"""

from __future__ import annotations

import hashlib
import json
import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import boto3
from botocore.exceptions import ClientError

from mirrorless.functions.custom_resource import respond

if TYPE_CHECKING:
    from collections.abc import Iterator

_FOLDER: Final = Path(__file__).parent / "release"
_PREFIX: Final = "releases/"
_KEPT_FOR: Final = timedelta(days=14)


def handler(event: dict[str, Any], context: Any) -> None:  # noqa: ANN401 -- Lambda's context
    """Publish on Create and Update, remove on Delete."""
    given = event["ResourceProperties"]
    bucket, layer = given["Bucket"], given["Library"]
    respond(event, context, lambda: remove(bucket) if event["RequestType"] == "Delete" else publish(bucket, layer))


def publish(bucket: str, layer: str) -> dict[str, str]:
    """Copy the release, and remove what was replaced two weeks ago; the result is the resource's attributes.

    `layer` is the ARN of the layer's version.
    """
    files = sorted(path for path in _FOLDER.iterdir() if path.is_file())
    digest = hashlib.sha256()
    for path in files:
        digest.update(path.name.encode())
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    release = digest.hexdigest()[:16]
    s3 = boto3.client("s3")
    for path in files:
        s3.upload_file(str(path), bucket, f"{_PREFIX}{release}/{path.name}")
    _remove_replaced(s3, bucket, release)
    _remove_layers(layer)
    addresses = {path.name: f"s3://{bucket}/{_PREFIX}{release}/{path.name}" for path in files}
    return {
        "Release": release,
        "PythonEnvironment": addresses["environment.tar.gz"],
        "PartitionCopy": addresses["partition_copy.py"],
        "VerifyCopy": addresses["verify_copy.py"],
        "KafkaJars": ",".join(address for name, address in addresses.items() if name.endswith(".jar")),
    }


def remove(bucket: str) -> dict[str, str]:
    """Remove all releases; raises `ValueError` if a job names one: its flow has to be deleted first."""
    s3 = boto3.client("s3")
    if used := _used_releases(bucket):
        raise ValueError(f"jobs of other stacks use releases of {bucket}: {', '.join(sorted(used.values()))}")
    for key, _ in _published(s3, bucket):
        s3.delete_object(Bucket=bucket, Key=key)
    return {}


def _remove_replaced(s3: Any, bucket: str, release: str) -> None:  # noqa: ANN401 -- boto3's client
    """A release is kept for two weeks from when the next one came, and as long as a job names it."""
    since: dict[str, datetime] = {}
    keys: dict[str, list[str]] = {}
    for key, modified in _published(s3, bucket):
        name = key.removeprefix(_PREFIX).split("/", 1)[0]
        since[name] = max(modified, since.get(name, modified))
        keys.setdefault(name, []).append(key)
    used = _used_releases(bucket)
    for name, at in since.items():
        # S3 tells seconds: two releases may have the same one.
        replaced = min((when for other, when in since.items() if other != name and when >= at), default=None)
        if name not in (release, *used) and replaced is not None and datetime.now(UTC) - replaced > _KEPT_FOR:
            for key in keys[name]:
                s3.delete_object(Bucket=bucket, Key=key)


def _used_releases(bucket: str) -> dict[str, str]:
    """Return the releases that Glue jobs of this account and region name, each with one of these jobs."""
    found: dict[str, str] = {}
    for page in boto3.client("glue").get_paginator("get_jobs").paginate():
        for job in page["Jobs"]:
            text = json.dumps([job["Command"], job.get("DefaultArguments", {})])
            for name in re.findall(rf"s3://{re.escape(bucket)}/{_PREFIX}([0-9a-f]+)/", text):
                found[name] = job["Name"]
    return found


def _remove_layers(current: str) -> None:
    """Remove versions of the layer that were replaced two weeks ago and that no function has."""
    functions = boto3.client("lambda")
    layer, _, number = current.rpartition(":")
    name = layer.rpartition(":")[2]
    pages = functions.get_paginator("list_layer_versions").paginate(LayerName=name)
    versions = sorted((one for page in pages for one in page["LayerVersions"]), key=lambda one: one["Version"])
    # When the next version was published.
    replaced = {one["Version"]: datetime.fromisoformat(after["CreatedDate"]) for one, after in pairwise(versions)}
    old = {one for one, at in replaced.items() if one != int(number) and datetime.now(UTC) - at > _KEPT_FOR}
    if not old:
        return
    for page in functions.get_paginator("list_functions").paginate(FunctionVersion="ALL"):
        old -= {
            int(one["Arn"].rpartition(":")[2])
            for some in page["Functions"]
            for one in some.get("Layers", ())
            if one["Arn"].startswith(f"{layer}:")
        }
    for version in old:
        functions.delete_layer_version(LayerName=name, VersionNumber=version)


def _published(s3: Any, bucket: str) -> Iterator[tuple[str, datetime]]:  # noqa: ANN401 -- boto3's client
    """Yield keys of all releases and when they were written; none where there is no bucket."""
    try:
        for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=_PREFIX):
            for one in page.get("Contents", ()):
                yield one["Key"], one["LastModified"]
    except ClientError as error:
        if error.response["Error"]["Code"] != "NoSuchBucket":
            raise

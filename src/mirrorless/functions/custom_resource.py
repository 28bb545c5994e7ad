"""Answers CloudFormation's requests for a custom resource, whether the work succeeds or fails."""

from __future__ import annotations

import json
import urllib.request
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def respond(
    event: Mapping[str, Any],
    context: Any,  # noqa: ANN401 -- Lambda's context
    work: Callable[[], Mapping[str, str]],
    *,
    identify: Callable[[Mapping[str, str]], str] | None = None,
) -> None:
    """Do the work and report its result, the resource's attributes, to CloudFormation; 4 KB at most.

    `identify` makes the resource's id of the attributes; for an id that changes, CloudFormation deletes the old one.
    An exception of the work becomes the reason of a failed deployment: without an answer CloudFormation waits until
    the resource's ServiceTimeout.
    """
    # Without `identify` the id never changes: after an update with a new id CloudFormation deletes the old resource.
    resource = event.get("PhysicalResourceId", event["LogicalResourceId"])
    answer: dict[str, Any] = {"Status": "SUCCESS"}
    try:
        answer["Data"] = dict(work())
        if identify is not None and event["RequestType"] != "Delete":
            resource = identify(answer["Data"])
    except Exception as error:  # noqa: BLE001 -- see above
        print(f"{event['RequestType']} of {resource} failed: {error!r}")  # noqa: T201 -- the function's log
        answer |= {"Status": "FAILED", "Reason": f"{error}; log group {context.log_group_name}"}
    same = {name: event[name] for name in ("StackId", "RequestId", "LogicalResourceId")}
    request = urllib.request.Request(  # noqa: S310 -- CloudFormation's address in S3
        event["ResponseURL"],
        data=json.dumps(answer | same | {"PhysicalResourceId": resource}).encode(),
        method="PUT",
        headers={"Content-Type": ""},
    )
    urllib.request.urlopen(request, timeout=30).close()  # noqa: S310

"""Answers CloudFormation's requests for a custom resource, whether the work succeeds or fails."""

from __future__ import annotations

import json
import urllib.request
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def respond(event: Mapping[str, Any], context: Any, work: Callable[[], Mapping[str, str]]) -> None:  # noqa: ANN401 -- Lambda's context
    """Do the work and report its result, the resource's attributes, to CloudFormation; 4 KB at most.

    An exception of the work becomes the reason of a failed deployment: without an answer CloudFormation waits until
    the resource's ServiceTimeout.
    """
    # The id never changes: after an update with a new id CloudFormation would delete the old resource.
    resource = event.get("PhysicalResourceId", event["LogicalResourceId"])
    answer: dict[str, Any] = {"Status": "SUCCESS"}
    try:
        answer["Data"] = dict(work())
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

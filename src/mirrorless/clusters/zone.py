"""The id of the Availability Zone that this process runs in, for `client.rack=auto`.

Amazon MSK's brokers have that id as `broker.rack` (`use1-az1`). A function is in one of its subnets, which one is known
to Lambda's metadata endpoint only ("Using the Lambda metadata endpoint" in the Lambda developer guide).
"""

from __future__ import annotations

import json
import os
import urllib.request
from functools import cache
from typing import Final

AUTO: Final = "auto"
_PATH: Final = "/2026-01-15/metadata/execution-environment"
_TIMEOUT_S: Final = 2.0


@cache
def zone_id() -> str | None:
    """Return the id; None outside of Lambda, or if the endpoint does not answer: then leaders are read."""
    host, token = os.environ.get("AWS_LAMBDA_METADATA_API"), os.environ.get("AWS_LAMBDA_METADATA_TOKEN")
    if not host or not token:
        return None
    request = urllib.request.Request(f"http://{host}{_PATH}", headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as response:  # noqa: S310 -- Lambda's own address
            answer = json.load(response)
    except (OSError, ValueError):
        return None
    found = answer.get("AvailabilityZoneID") if isinstance(answer, dict) else None
    return str(found) if found else None

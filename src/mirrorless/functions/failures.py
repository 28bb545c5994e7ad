"""Sends records that cannot be processed to an SQS queue, so that a trigger does not retry them endlessly."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from mirrorless.errors import AwsError
from mirrorless.settings.aws import client

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mirrorless.functions.events import Refused

_A_REQUEST: Final = 10
_LARGEST_BYTES: Final = 20_000


def send(queue: str, refused: Sequence[Refused], *, flow: str, function: str) -> None:
    """Send records to `queue`, the URL of a queue, each a message of JSON: flow, function, reason, record.

    A record of more than 20,000 bytes is sent without key, value and headers; topic, partition and offset locate it.
    Raises `AwsError`.
    """
    bodies = [_body(one, flow=flow, function=function) for one in refused]
    try:
        with client("sqs", region=None) as sqs:
            for at in range(0, len(bodies), _A_REQUEST):
                entries = [{"Id": str(n), "MessageBody": body} for n, body in enumerate(bodies[at : at + _A_REQUEST])]
                answer = sqs.send_message_batch(QueueUrl=queue, Entries=entries)
                if failed := answer.get("Failed"):
                    raise ValueError(f"SQS refused {len(failed)} messages: {failed[0].get('Message', '')}")
    except ValueError as error:
        raise AwsError(f"failure destination {queue}: {error}") from None


def _body(refused: Refused, *, flow: str, function: str) -> str:
    fields = {"flow": flow, "function": function, "reason": refused.reason}
    body = json.dumps(fields | {"record": refused.raw}, default=str)
    if len(body) <= _LARGEST_BYTES:
        return body
    raw = refused.raw if isinstance(refused.raw, dict) else {}
    where = {name: str(raw.get(name))[:300] for name in ("topic", "partition", "offset")}
    return json.dumps(fields | {"record": where, "left_out_bytes": len(body)})

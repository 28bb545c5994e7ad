"""Common code of topic readers: a consumer without a group, and how to wait for its messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer

from mirrorless.client_logs import LIBRDKAFKA
from mirrorless.clusters.client_settings import for_confluent

if TYPE_CHECKING:
    from confluent_kafka import Message

    from mirrorless.settings import Cluster


def reader(cluster: Cluster, **own: Any) -> Consumer:  # noqa: ANN401 -- librdkafka's values
    """Return a consumer to `assign`, which reports the end of each partition; `own` has settings with `_` for `.`.

    The library requires a group, and looks up its coordinator: a user without rights on it gets
    GROUP_AUTHORIZATION_FAILED among the messages, which has no effect here.
    """
    settings = {
        "logger": LIBRDKAFKA,
        "group.id": "mirrorless",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",
        **{key.replace("_", "."): value for key, value in own.items()},
    }
    return Consumer(for_confluent(cluster, role="consumer", extra=settings))


def waiting(consumer: Consumer, most: int, *, seconds: float) -> list[Message]:
    """Take up to `most` available messages and partition ends; if there are none, wait for the first one so long.

    The library's own call with a timeout waits all of it, unless as many arrive as were requested.
    """
    return consumer.consume(most, timeout=0) or consumer.consume(1, timeout=seconds)

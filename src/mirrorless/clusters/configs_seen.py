"""Reads a config of topics as one broker knows it: a change reaches brokers one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mirrorless.kafka_python.errors import for_code
from mirrorless.kafka_python.messages import DescribeConfigsRequest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mirrorless.kafka_python.admin import AdminRequests

_TOPIC: Final = 2


def topic_config_seen_by(client: AdminRequests, node: int, topics: Iterable[str], name: str) -> dict[str, str]:
    """Return the value of config `name` of each topic at one broker; raises kafka-python's errors."""
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsRequest.DescribeConfigsResource(
                resource_type=_TOPIC, resource_name=topic, configuration_keys=[name]
            )
            for topic in topics
        ],
        include_synonyms=False,
        include_documentation=False,
    )
    found: dict[str, str] = {}
    for result in client.ask_broker(node, request).results:
        if result.error_code:
            raise for_code(result.error_code)
        for config in result.configs or ():
            if config.name == name and config.value is not None:
                found[result.resource_name] = config.value
    return found

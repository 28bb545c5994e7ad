"""The nodes of a MirrorMaker 2 in dedicated mode, as its target sees them."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Final

from mirrorless.clusters.kafka_admin_client import admin_client
from mirrorless.errors import ClusterUnavailable
from mirrorless.kafka_python import errors as kafka_errors

if TYPE_CHECKING:
    from mirrorless.settings import Flow

_WITHOUT_MEMBERS: Final = ("Empty", "Dead")


def group_of(flow: Flow) -> str:
    """Return the group on the target that they are members of (`MirrorMakerConfig.workerConfig`)."""
    return f"{flow.source.alias}-mm2"


def nodes_run(flow: Flow) -> bool | None:
    """Whether some run, be it for this flow or not; None where the group is not listed.

    So it is where there never were any, where it may not be seen, and while its coordinator is moving; and a broker
    before 2.6 does not say. A group stays listed for some minutes when its last member has left it.

    Raises `ClusterUnavailable` where the target does not answer. Groups are listed, not described: confluent-kafka
    refuses to describe those of Connect's protocol, and kafka-python stumbles over what their members say.
    """
    try:
        with closing(admin_client(flow.target)) as client:
            groups = client.list_groups()
    except (kafka_errors.KafkaError, OSError) as error:
        raise ClusterUnavailable(str(error) or type(error).__name__, cluster=flow.target.alias) from error
    states = {group["group_id"]: group.get("group_state") for group in groups}
    state = states.get(group_of(flow))
    return None if state is None else state not in _WITHOUT_MEMBERS

"""The nodes of a MirrorMaker 2 in dedicated mode, as members of its group on the target."""

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
    """Return the group of the nodes on the target (`MirrorMakerConfig.workerConfig`)."""
    return f"{flow.worker_alias}-mm2"


def nodes_run(flow: Flow) -> bool | None:
    """Whether nodes run, for this flow or not; None if the group is not listed.

    That is if there never were any, if the user may not see the group, and while its coordinator moves. A group stays
    listed for some minutes after its last member has left. Brokers before 2.6 list no states: nodes may run then.

    Raises `ClusterUnavailable` if the target does not answer. Groups are listed, not described: confluent-kafka
    refuses to describe groups of Connect's protocol, and kafka-python cannot parse their members.
    """
    try:
        with closing(admin_client(flow.target)) as client:
            groups = client.list_groups()
    except (kafka_errors.KafkaError, OSError) as error:
        raise ClusterUnavailable(str(error) or type(error).__name__, cluster=flow.target.alias) from error
    states = {group["group_id"]: group.get("group_state") for group in groups}
    return states[group_of(flow)] not in _WITHOUT_MEMBERS if group_of(flow) in states else None

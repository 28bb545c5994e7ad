"""The facts of a drill in which nothing is wrong."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from mirrorless.clusters.acls import Acl
from mirrorless.clusters.groups import GroupListing
from mirrorless.clusters.target_state import TargetState
from mirrorless.copy.flow.status import FlowStatus
from mirrorless.offsets.failover_plan import FailoverPlan, Forecast
from mirrorless.operations.drill.facts import AclFacts, BacklogFacts, DrillFacts, GroupFacts, NotCopied, RecordFacts
from mirrorless.operations.drill.positions import Compared, Outcome, Position
from mirrorless.operations.results import MeasuredStep
from mirrorless.settings import Cluster, Flow
from mirrorless.verify.metadata_diff import Metadata


def flow_with(**settings: object) -> Flow:
    """A flow with these settings."""
    return Flow(
        source=Cluster(alias="a", bootstrap_servers="a:1", client={"sasl.jaas.config": "password=secret"}),
        target=Cluster(alias="b", bootstrap_servers="b:1"),
        **cast("Any", {"topics": ("orders",)} | settings),
    )


def forecast(**changes: object) -> Forecast:
    """A group's exact forecast, with these changes."""
    fields: dict[str, Any] = {
        "group": "billing",
        "topic": "orders",
        "remote_topic": "a.orders",
        "partition": 0,
        "source_offset": 70,
        "target_offset": 60,
        "how": "run",
        "early_by": 0,
        "committed": 60,
        "has_members": False,
        "continues_at": 60,
        "read_again": 0,
        "skipped": 0,
        "checkpoint_offset": 60,
        "checkpoint_source_offset": 70,
        "not_copied": 2,
        "not_copied_exact": True,
        "newest_ms": 1_000,
    }
    return Forecast(**fields | changes)


def compared(outcome: Outcome = Outcome.SAME, *, records: int = 5) -> Compared:
    """A comparison of one position."""
    position = Position(
        place=("orders", 0), remote_place=("a.orders", 0), source_offset=70, target_offset=60, who=("group billing",)
    )
    return Compared(position=position, outcome=outcome, text=f"it is {outcome}", records=records)


def status_with(**changes: object) -> FlowStatus:
    """A flow that is copied, with these changes."""
    fields: dict[str, Any] = {
        "state": TargetState.STARTED,
        "topics": 1,
        "partitions": 2,
        "begun": 2,
        "lag_records": 0,
        "halted": {},
        "unknown": {},
        "runs": (SimpleNamespace(is_ready=True),),
    }
    return FlowStatus(**fields | changes)


def acl(topic: str, operation: str = "READ") -> Acl:
    """An ACL that allows something."""
    return Acl(topic=topic, pattern="LITERAL", principal="User:app", host="*", operation=operation, permission="ALLOW")


def plan_of(*forecasts: Forecast, troubles: tuple[str, ...] = ()) -> FailoverPlan:
    """A plan of a source that answers."""
    return FailoverPlan(flow="a->b", source_answers=True, forecasts=forecasts, troubles=troubles)


def facts(**changes: object) -> DrillFacts:
    """Facts with these changes."""
    listed = (GroupListing(name="billing", kind="classic", state="stable", has_protocol=True),)
    fields: dict[str, Any] = {
        "flow": flow_with(),
        "remote": {"orders": "a.orders"},
        "counts": {"orders": (2, 2)},
        "plan": plan_of(forecast()),
        "status": status_with(),
        "heartbeat_ms": 9_500,
        "heartbeat_read_ms": 10_000,
        "backlog": BacklogFacts(partitions={("orders", 0): NotCopied(0, True, None)}, read_ms=10_000),
        "metadata": Metadata({"orders": "a.orders"}),
        "acls": AclFacts(source=frozenset({acl("orders")}), target=frozenset({acl("a.orders")})),
        "groups": GroupFacts(listed=listed),
        "records": RecordFacts(
            positions=(compared(),),
            positions_of=1,
            windows=(compared(records=50),),
            partitions=1,
            partitions_of=2,
        ),
        "steps": (MeasuredStep("translate", 1.5, True), MeasuredStep("compare", 20.0, False)),
    }
    return DrillFacts(**fields | changes)

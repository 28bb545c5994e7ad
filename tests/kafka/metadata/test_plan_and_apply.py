"""`mirrorless plan` shows what `mirrorless apply` then does, for both directions of an active/active pair."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from click.testing import CliRunner

from mirrorless.cli.apply import apply
from mirrorless.cli.plan import plan
from tests.support.secured import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

    from tests.support.secured import Secured


def planned(path: Path, *options: str) -> Result:
    return CliRunner().invoke(plan, [str(path), *options])


def test_a_plan_becomes_true_and_then_there_is_nothing_left_to_do(secured: Secured) -> None:
    file = secured.file(("a", "b"), ("b", "a"))
    secured.topic("a", "orders", 3, cleanup_policy="compact")
    secured.topic("b", "clicks")
    secured.grant("a", secured.acl(secured.name("orders"), "READ"))
    remote = secured.remote("orders", "a")

    first = planned(file)
    assert first.exit_code == 1
    assert f"  create {remote}: 3 partitions, replication factor 1 (" in first.output
    assert "    cleanup.policy = compact\n" in first.output
    assert f"  add ACL: ALLOW READ on {remote} to User:" in first.output
    assert secured.topics("b").keys() == {secured.name("clicks")}

    applied = CliRunner().invoke(apply, [str(file)])
    assert applied.exit_code == 0
    assert f"{secured.alias('a')}->{secured.alias('b')}: 3 of 3 changes made\n" in applied.output
    assert secured.topics("b")[remote] == 3
    assert secured.remote("clicks", "b") in secured.topics("a")

    eventually(lambda: planned(file).exit_code == 0)
    last = planned(file)
    assert f"{secured.alias('a')}->{secured.alias('b')}: no changes, " in last.output
    assert (
        f"  leave out {secured.remote('clicks', 'b')} (cycle: was already replicated from {secured.alias('b')})\n"
        in last.output
    )
    assert "  leave out __consumer_offsets (internal: " in last.output or "__consumer_offsets" not in last.output


def test_machines_get_both_values_of_a_config(secured: Secured) -> None:
    file = secured.file(("a", "b"))
    secured.topic("a", "orders", retention_ms="1000000")
    CliRunner().invoke(apply, [str(file)])
    secured.set_config("b", secured.remote("orders", "a"), "retention.ms", "5")

    result = planned(file, "--json")

    assert result.exit_code == 1
    flow = json.loads(result.output)["flows"][f"{secured.alias('a')}->{secured.alias('b')}"]
    assert flow["actions"] == [
        {
            "action": "AlterConfigs",
            "topic": secured.remote("orders", "a"),
            "differences": [{"name": "retention.ms", "upstream": "1000000", "downstream": "5", "delete": False}],
            "reason": f"to match {secured.name('orders')}",
        }
    ]
    assert {"topic", "kind", "reason"} == set(flow["left_out"][0])
    assert (flow["problems"], flow["notes"]) == ([], [])
    assert "    set retention.ms = 1000000 (now 5)\n" in planned(file).output


def test_one_flow_that_cannot_be_planned_does_not_hide_the_other(secured: Secured) -> None:
    secured.topic("a", "orders")
    file = secured.file(("a", "b"), ("a", "c"))
    own = re.compile(rf"^{secured.alias('c')}\.bootstrap\.servers = .*", re.MULTILINE)
    there = f"{secured.alias('c')}.bootstrap.servers = {secured.cluster('a').bootstrap_servers}"
    file.write_text(own.sub(there, file.read_text()))

    result = planned(file)

    assert result.exit_code == 2
    assert f"create {secured.remote('orders', 'a')}" in result.output
    assert "source and target are the same cluster" in result.output
    assert CliRunner().invoke(apply, [str(file)]).exit_code == 2
    assert secured.remote("orders", "a") in secured.topics("b")

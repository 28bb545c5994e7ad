"""A pass over many topics is a few requests, not one for each, and changes nothing where nothing is amiss."""

from __future__ import annotations

import json
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.admin import NewTopic

from mirrorless.clusters.admin import Admin
from mirrorless.metadata.planning import Admins, switched_on
from mirrorless.metadata.sync_pass import one_pass
from tests.support.secured import eventually

if TYPE_CHECKING:
    from mirrorless.settings import Cluster
    from tests.support.secured import Secured

TOPICS = 600


class Counted:
    """An admin client that knows which requests it has made; bootstrapping and the metadata it refreshes included."""

    def __init__(self, cluster: Cluster) -> None:
        self._latest: dict[str, Any] = {}
        self.admin = Admin(cluster, extra={"stats_cb": self._keep, "statistics.interval.ms": 50})

    def requests(self) -> Counter[str]:
        """All requests so far."""
        self._latest = {}
        until = time.monotonic() + 120
        while not self._latest and time.monotonic() < until:
            self.admin.client.poll(0.1)
        found: Counter[str] = Counter()
        for broker in self._latest["brokers"].values():
            found.update({name: count for name, count in broker["req"].items() if count})
        return found

    def _keep(self, text: str) -> None:
        self._latest = json.loads(text)


@pytest.mark.timeout(300)
def test_requests_of_a_pass(secured: Secured) -> None:
    names = [secured.name(f"t{number}") for number in range(TOPICS)]
    source = secured.admin("a")
    created = source.client.create_topics([NewTopic(name, 2, 1, config={"retention.ms": "9000000"}) for name in names])
    for future in created.values():
        future.result()
    eventually(lambda: len(source.metadata().topics.keys() & set(names)) == TOPICS)
    flow = secured.flow("a", "b")
    ends = Counted(flow.source), Counted(flow.target)
    parts = list(switched_on(flow))

    first = one_pass(flow, parts, admins=Admins(ends[0].admin, ends[1].admin))
    assert len(first.applied) == TOPICS + 1
    assert not first.failures
    once = [one.requests() for one in ends]
    assert once[0]["DescribeConfigs"] == 2  # 500 topics a request
    assert once[1]["CreateTopics"] == 2

    second = one_pass(flow, parts, admins=Admins(ends[0].admin, ends[1].admin))
    assert second.applied == ()
    made = [one.requests() - before for one, before in zip(ends, once, strict=True)]
    assert [one["DescribeConfigs"] for one in made] == [2, 3]  # that of the progress is looked at too
    for one in made:
        assert one.keys() <= {"DescribeConfigs", "Metadata", "ApiVersion"}
        assert one["Metadata"] <= 3

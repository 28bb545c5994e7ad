"""What is known of a cluster after the first attempt to connect is shown then."""

from __future__ import annotations

import time

import pytest

from mirrorless.clusters import first_contact
from mirrorless.clusters.admin import Admin
from mirrorless.errors import ClusterError, ClusterUnavailable
from mirrorless.settings import Cluster

NOBODY = "127.0.0.1:1"


@pytest.mark.parametrize("servers", [NOBODY, "no-such-host.invalid:9092"])
def test_a_final_answer_is_shown_once_and_not_waited_for_again(servers: str) -> None:
    told: list[tuple[str, str]] = []
    with first_contact.shown(lambda *said: told.append(said), patience_s=0.5):
        for _ in range(2):
            began = time.monotonic()
            with pytest.raises(ClusterUnavailable, match=rf"^cluster A: no answer from {servers}: [^:]"):
                Admin(Cluster(alias="A", bootstrap_servers=servers)).metadata()
        assert time.monotonic() - began < 0.3
    ((alias, reason),) = told
    assert (alias, reason.startswith(f"{servers}: ")) == ("A", True)


def test_without_a_command_the_time_of_the_request_counts() -> None:
    began = time.monotonic()
    with pytest.raises(ClusterUnavailable):
        Admin(Cluster(alias="A", bootstrap_servers=NOBODY)).metadata(timeout_s=2)
    assert time.monotonic() - began > 1.5


def test_a_reason_that_names_its_cluster_names_it_once() -> None:
    inner = ClusterUnavailable("no answer from a:1", cluster="A")
    assert str(ClusterError(str(inner), cluster="A")) == "cluster A: no answer from a:1"

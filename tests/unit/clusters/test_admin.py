"""An administrative client ends in the thread that lets go of it."""

from __future__ import annotations

import gc
import weakref

from mirrorless.clusters.admin import Admin
from mirrorless.settings import Cluster


def test_it_does_not_wait_for_the_garbage_collector() -> None:
    # That may run in a thread of librdkafka's, which must not end a client: the process would be aborted.
    gc.disable()
    try:
        admin = Admin(Cluster(alias="A", bootstrap_servers="127.0.0.1:1"))
        watched = weakref.ref(admin)
        del admin
        assert watched() is None
    finally:
        gc.enable()


def test_those_of_one_cluster_share_a_client_until_its_settings_change() -> None:
    cluster = Cluster(alias="A", bootstrap_servers="127.0.0.1:1")
    one, same = Admin(cluster), Admin(cluster)
    assert one.client is same.client
    assert Admin(cluster.model_copy(update={"alias": "B"})).client is not one.client
    assert Admin(cluster.model_copy(update={"client": {"client.id": "another"}})).client is not one.client
    assert Admin(cluster, extra={"reconnect.backoff.max.ms": 60_000}).client is not one.client
    client = id(one.client)
    del one
    assert id(same.client) == client

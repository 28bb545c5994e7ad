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

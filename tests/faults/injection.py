"""The faults, one method each: what is hurt, and that it is well again afterwards."""

from __future__ import annotations

import random
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import psutil
import pytest
from kafka import TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.protocol.admin.topics import ElectionType

from tests.faults.load import PARTITIONS
from tests.support.processes import Mirrorless

if TYPE_CHECKING:
    from collections.abc import Callable

    from mirrorless.local.embedded_kafka import EmbeddedCluster
    from tests.support.proxy import Proxy
    from tests.support.world import World

_DOWN_S = 6.0
_STOPPED_S = 60.0
_BOTH_S = 15.0
"""How long a driver that was stopped and the one that took over work side by side."""
_ORPHANED_S = 10.0
"""How long a killed driver's executors live beside the next driver."""
_LEADERS_S = 2.0
_PATIENCE_S = 60.0
SPARK = ("--engine", "spark", "--spark-master", "local-cluster[2,1,1024]")


class Injection:
    """Owns the running driver, `driver`, and starts another where one was killed; `seed` makes a run repeatable."""

    def __init__(self, world: World, proxies: dict[str, list[Proxy]], *, seed: int) -> None:
        self._world = world
        self._proxies = proxies
        self._random = random.Random(seed)
        self.driver = self._start()
        self.kinds: dict[str, Callable[[], None]] = {
            "SIGKILL of the driver": self._kill_driver,
            "SIGKILL of an executor": self._kill_executor,
            "SIGKILL of a Python worker": self._kill_worker,
            "SIGKILL and restart of a source broker": lambda: self._kill_broker(self._world.source),
            "SIGKILL and restart of a target broker": lambda: self._kill_broker(self._world.target),
            "leaders moved on the source": lambda: self._move_leaders(self._world.source, remote=False),
            "leaders moved on the target": lambda: self._move_leaders(self._world.target, remote=True),
            "connections to the source cut half-way": lambda: self._cut("source"),
            "connections to the target cut half-way": lambda: self._cut("target"),
            "connections to the source delayed": lambda: self._delay("source"),
            "connections to the target delayed": lambda: self._delay("target"),
            "SIGSTOP of a driver, a second one works, SIGCONT": self._stop_driver,
        }

    def plan(self, count: int) -> list[str]:
        """So many faults: every kind in turn, in a random order; the long one only in every other turn."""
        chosen: list[str] = []
        while len(chosen) < count:
            turn = list(self.kinds)
            if len(chosen) > len(self.kinds):
                turn.pop()
            self._random.shuffle(turn)
            chosen += turn
        return chosen[:count]

    def end(self) -> None:
        """Let the driver land."""
        self.driver.process.send_signal(signal.SIGTERM)
        self.driver.wait(60)

    def _start(self) -> Mirrorless:
        return Mirrorless(self._world.file, *SPARK)

    def _kill_driver(self) -> None:
        # Its JVM and executors are left to find out by themselves, as on a machine of their own.
        self.driver.family()
        self.driver.process.kill()
        self.driver.process.wait()
        old, self.driver = self.driver, self._start()
        time.sleep(_ORPHANED_S)
        old.kill()

    def _kill_executor(self) -> None:
        self._kill_one("CoarseGrainedExecutorBackend")

    def _kill_worker(self) -> None:
        self._kill_one("pyspark.daemon")

    def _kill_one(self, what: str) -> None:
        until = time.monotonic() + _PATIENCE_S
        while time.monotonic() < until:
            found = []
            for process in self.driver.family():
                with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                    if any(what in part for part in process.cmdline()):
                        found.append(process)
            if found:
                self._random.choice(found).kill()
                return
            time.sleep(0.5)
        raise AssertionError(f"no process of the driver is a {what}:\n{self.driver.text()[-2000:]}")

    def _kill_broker(self, cluster: EmbeddedCluster) -> None:
        node = self._random.randrange(1, 4)
        cluster.kill_broker(node)
        time.sleep(_DOWN_S)
        cluster.start_broker(node)

    def _move_leaders(self, cluster: EmbeddedCluster, *, remote: bool) -> None:
        admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers.split(","))
        try:
            wanted = {}
            for topic, count in PARTITIONS.items():
                for partition in range(count):
                    replicas = self._random.sample([1, 2, 3], 3)
                    wanted[TopicPartition(self._world.remote(topic) if remote else topic, partition)] = replicas
            admin.alter_partition_reassignments(wanted)
            time.sleep(_LEADERS_S)
            admin.elect_leaders(ElectionType.PREFERRED, list(wanted), raise_errors=False)
        finally:
            admin.close()

    def _cut(self, side: str) -> None:
        until = time.monotonic() + _PATIENCE_S
        while not sum(proxy.cut() for proxy in self._proxies[side]):  # none right after a worker was killed
            assert time.monotonic() < until, f"there is no connection to cut:\n{self.driver.text()[-2000:]}"
            time.sleep(0.2)

    def _delay(self, side: str) -> None:
        for proxy in self._proxies[side]:
            proxy.delay(self._random.uniform(1, 8))

    def _stop_driver(self) -> None:
        stopped = self.driver
        family = [psutil.Process(stopped.process.pid), *stopped.family()]
        for process in family:
            with suppress(psutil.NoSuchProcess):
                process.suspend()
        self.driver = self._start()
        time.sleep(_STOPPED_S)
        for process in family:
            with suppress(psutil.NoSuchProcess):
                process.resume()
        time.sleep(_BOTH_S)
        stopped.process.send_signal(signal.SIGTERM)
        with suppress(pytest.fail.Exception):
            stopped.wait(30)
        stopped.kill()

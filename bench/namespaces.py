"""Network namespaces with a router between two of them, whose failure is a real cut: packets are dropped silently.

The benchmark and its brokers are in one namespace, the engine in another. They are joined by two paths: `NEAR` is
reached directly, `FAR` through the router. Needs root, and `unshare`, `nsenter` and `ip`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from mirrorless.local import broker, embedded_kafka

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

NEAR: Final = "10.77.2.1"
FAR: Final = "10.77.0.1"
_INSIDE: Final = "MIRRORLESS_BENCH_NAMESPACE"
_START_S: Final = 10.0


def run_inside(module: str, arguments: Sequence[str]) -> None:
    """Run the benchmark again in a network namespace of its own, unless it is; its brokers then have `NEAR`."""
    if _INSIDE not in os.environ:
        os.environ[_INSIDE] = "1"
        unshare = shutil.which("unshare") or "unshare"
        sys.exit(subprocess.call([unshare, "--net", sys.executable, "-m", module, *arguments]))
    broker.HOST = embedded_kafka.HOST = NEAR  # type: ignore[attr-defined]


class Router:
    """The namespaces of the engine and of the router, while the context lasts."""

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._router, self._engine = (stack.enter_context(_Namespace()) for _ in range(2))
            self._join()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def prefix(self) -> tuple[str, ...]:
        """What a command begins with that is to run in the engine's namespace."""
        return self._engine.prefix

    def cut(self) -> None:
        """Drop every packet to and from `FAR`."""
        self._router.run("sh", "-c", "echo 0 > /proc/sys/net/ipv4/ip_forward")

    def mend(self) -> None:
        """Carry packets again."""
        self._router.run("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")

    def _join(self) -> None:
        _ip("link", "set", "lo", "up")
        self._engine.run("ip", "link", "set", "lo", "up")
        for ours, theirs, namespace, address, other in (
            ("far", "far-r", self._router, FAR, "10.77.0.2"),
            ("near", "near-e", self._engine, NEAR, "10.77.2.2"),
        ):
            _ip("link", "add", ours, "type", "veth", "peer", "name", theirs)
            _ip("link", "set", theirs, "netns", str(namespace.process.pid))
            _ip("address", "add", f"{address}/24", "dev", ours)
            _ip("link", "set", ours, "up")
            namespace.run("ip", "address", "add", f"{other}/24", "dev", theirs)
            namespace.run("ip", "link", "set", theirs, "up")
        router, engine = self._router, self._engine
        router.run("ip", "link", "add", "engine", "type", "veth", "peer", "name", "router")
        router.run("ip", "link", "set", "router", "netns", str(engine.process.pid))
        for namespace, device, address in ((router, "engine", "10.77.1.2"), (engine, "router", "10.77.1.1")):
            namespace.run("ip", "address", "add", f"{address}/24", "dev", device)
            namespace.run("ip", "link", "set", device, "up")
        engine.run("ip", "route", "add", "10.77.0.0/24", "via", "10.77.1.2")
        _ip("route", "add", "10.77.1.0/24", "via", "10.77.0.2")
        self.mend()


class _Namespace:
    """A network namespace, kept by a process that sleeps."""

    def __enter__(self) -> Self:
        self.process = subprocess.Popen([shutil.which("unshare") or "unshare", "--net", "sleep", "infinity"])
        own, until = Path("/proc/self/ns/net").readlink(), time.monotonic() + _START_S
        while Path(f"/proc/{self.process.pid}/ns/net").readlink() == own:
            assert time.monotonic() < until
            time.sleep(0.01)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()

    @property
    def prefix(self) -> tuple[str, ...]:
        return "nsenter", f"--net=/proc/{self.process.pid}/ns/net"

    def run(self, *command: str) -> None:
        subprocess.run([*self.prefix, *command], check=True)


def _ip(*arguments: str) -> None:
    subprocess.run([shutil.which("ip") or "ip", *arguments], check=True)

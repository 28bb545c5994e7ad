"""The CPU and memory of a Lambda function: limits of the kernel (cgroup v1) around its process.

Lambda gives CPU in proportion to memory, a core for 1,769 MB. The quota is per 20 ms, as short as the kernel's
scheduler allows without much waste; memory is only measured, and compared with what the function would have.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_CPU: Final = Path("/sys/fs/cgroup/cpu")
_CORE_MB: Final = 1769
_PERIOD_US: Final = 20_000


def cores(memory_mb: int) -> float:
    """The share of a core that Lambda gives to a function of so many MB."""
    return memory_mb / _CORE_MB


@contextmanager
def limited(pid: int, *, memory_mb: int) -> Iterator[None]:
    """Give a process, and all that it starts from then on, the CPU of a function of so many MB."""
    group = _CPU / f"mirrorless-{pid}"
    group.mkdir()
    try:
        (group / "cpu.cfs_period_us").write_text(str(_PERIOD_US))
        (group / "cpu.cfs_quota_us").write_text(str(round(_PERIOD_US * cores(memory_mb))))
        (group / "cgroup.procs").write_text(str(pid))
        yield
    finally:
        for member in (group / "cgroup.procs").read_text().split():
            (_CPU / "cgroup.procs").write_text(member)
        group.rmdir()


def peak_mb(pid: int) -> float:
    """The largest resident memory that a process had, in MB."""
    found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) / 1000


def cpu_s(pid: int) -> float:
    """CPU seconds of a process so far, user and system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100

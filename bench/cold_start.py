"""What a cold start costs: time, CPU and memory to import each function, in a process of its own.

Run as `python -m bench.cold_start`. Median of several processes; time and CPU are those of the import alone, memory
is the process's peak (an interpreter that imports nothing is in the first line). On Lambda a function of 1,769 MB has
one vCPU, and CPU is in proportion to memory: a start that is all CPU takes as much longer.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

FUNCTIONS: Final = Path(__file__).parents[1] / "functions"
_TIMES: Final = 5
_VCPU_MB: Final = 1769
_SCRIPT: Final = """
import resource, sys, time
before = resource.getrusage(resource.RUSAGE_SELF)
begin = time.perf_counter()
if len(sys.argv) > 1:
    sys.path.insert(0, sys.argv[1])
    import app
    assert callable(app.handler)
seconds = time.perf_counter() - begin
after = resource.getrusage(resource.RUSAGE_SELF)
import json, pathlib, re
# Not ru_maxrss, if there is another way: that of the process which started this one is in it.
status = pathlib.Path("/proc/self/status")
peak_kb = int(re.search(r"VmHWM:\\s+(\\d+)", status.read_text())[1]) if status.exists() else after.ru_maxrss
print(json.dumps({
    "wall_s": seconds,
    "cpu_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
    "peak_mb": peak_kb / 1024,
    "modules": sorted({name.split(".")[0] for name in sys.modules}),
}))
"""


def imported(name: str | None) -> dict[str, Any]:
    """Import a function once in a new process; None imports nothing."""
    arguments = [] if name is None else [str(FUNCTIONS / name)]
    done = subprocess.run([sys.executable, "-c", _SCRIPT, *arguments], capture_output=True, check=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def names() -> list[str]:
    """Every function."""
    return sorted(path.parent.name for path in FUNCTIONS.glob("*/app.py"))


def main() -> None:
    """Print a table in Markdown."""
    print(f"| function | wall s | CPU s | peak MB | CPU s at 512 MB ({512 / _VCPU_MB:.2f} vCPU) |")
    print("|---|---|---|---|---|")
    for name in (None, *names()):
        imported(name)  # the first one writes and reads files that the others find in the page cache
        runs = [imported(name) for _ in range(_TIMES)]
        wall_s, cpu_s, peak_mb = (statistics.median(run[key] for run in runs) for key in ("wall_s", "cpu_s", "peak_mb"))
        at_512 = cpu_s * _VCPU_MB / 512
        print(f"| {name or '(Python alone)'} | {wall_s:.2f} | {cpu_s:.2f} | {peak_mb:.0f} | {at_512:.1f} |")


if __name__ == "__main__":
    main()

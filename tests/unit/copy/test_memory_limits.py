"""How much of a process's memory a slot uses for records."""

from __future__ import annotations

import pytest

from mirrorless.copy.flow.memory_limits import SPARK_WORKER, MemoryLimits

MIB = 1 << 20


@pytest.mark.parametrize(
    ("megabytes", "limits"),
    [
        (128, MemoryLimits(queued=8 * MIB, frames=8 * MIB, response=1 * MIB)),
        (256, MemoryLimits(queued=16 * MIB, frames=16 * MIB, response=2 * MIB)),
        (512, MemoryLimits(queued=32 * MIB, frames=32 * MIB, response=4 * MIB)),
        (1_024, SPARK_WORKER),
        (10_240, SPARK_WORKER),
    ],
)
def test_a_function_uses_a_part_of_its_memory_and_no_more_than_a_worker_of_spark(
    megabytes: int, limits: MemoryLimits
) -> None:
    assert MemoryLimits.within(megabytes) == limits

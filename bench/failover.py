"""A group that fails over and back three times, with this project's copy and with MirrorMaker 2's: what it reads twice.

Run as `python -m bench.failover`. Both copy the same kind of records between the same two clusters, one after the
other: small batches, and transactions of which half are aborted. The group stops in order, or as if it were killed with
four records of each topic read and not committed.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from mirrorless.local.embedded_kafka import ClusterSpec, start_clusters
from tests.support.pair import Outcome, Pair
from tests.support.peer import MirrorMaker, peer_settings

_SECOND = "1"
_START_S = 40.0
_SETTLE_S = 10.0
_KILLED = 4


def _hurry(pair: Pair) -> dict[str, str]:
    """MirrorMaker 2's intervals as short as they may be, and what its consumers need to leave out aborted records."""
    aliases = (pair.there.source_alias, pair.there.target_alias)
    return {
        "groups": pair.group,
        "sync.group.offsets.enabled": "true",
        "sync.group.offsets.interval.seconds": _SECOND,
        "refresh.groups.interval.seconds": _SECOND,
        "offset.flush.interval.ms": "1000",
        **{f"{alias}.consumer.isolation.level": "read_committed" for alias in aliases},
    }


def by_peer(pair: Pair, folder: Path, *, uncommitted: int) -> Outcome:
    """Let a running MirrorMaker 2 replicate, and give it time after each change."""
    with MirrorMaker(folder, peer_settings(*pair.worlds, **_hurry(pair)), as_shipped=True) as peer:
        waits = iter([_START_S])

        def settle() -> None:
            time.sleep(next(waits, _SETTLE_S))
            peer.check()

        return pair.there_and_back(uncommitted=uncommitted, replicate=settle)


def main() -> None:
    """Run all four and print a table, a column for each turn of the group."""
    print(f"{'':40} read twice at turn 1 to 7      in all  missed")
    with (
        start_clusters([ClusterSpec(name=name) for name in ("source", "target")]) as clusters,
        tempfile.TemporaryDirectory() as folder,
    ):
        for uncommitted in (0, _KILLED):
            how = f"killed, {uncommitted} uncommitted" if uncommitted else "stopped in order"
            for engine in ("Mirrorless", "MirrorMaker 2"):
                place = Path(folder) / f"{engine}-{uncommitted}"
                pair = Pair(clusters["source"], clusters["target"], place, group=f"{engine}-{uncommitted}")
                if engine == "Mirrorless":
                    found = pair.there_and_back(uncommitted=uncommitted, replicate=pair.replicate)
                else:
                    found = by_peer(pair, place, uncommitted=uncommitted)
                turns = " ".join(f"{count:3}" for count in found.again)
                print(f"{engine + ', ' + how:40} {turns:30} {sum(found.again):6} {found.missed:7}", flush=True)


if __name__ == "__main__":
    main()

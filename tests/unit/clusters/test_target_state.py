"""Connect's target state, byte for byte (`KafkaConfigBackingStore`, Kafka 4.3)."""

from __future__ import annotations

import pytest

from mirrorless.clusters.target_state import TargetState, key, parse, value


def test_the_bytes_are_connects() -> None:
    assert key("MirrorSourceConnector") == b"target-state-MirrorSourceConnector"
    assert value(TargetState.PAUSED) == b'{"state":"PAUSED","state.v2":"PAUSED"}'
    # What older workers do not know is PAUSED to them.
    assert value(TargetState.STOPPED) == b'{"state":"PAUSED","state.v2":"STOPPED"}'


@pytest.mark.parametrize("state", TargetState)
def test_what_is_written_is_read(state: TargetState) -> None:
    assert parse(value(state)) is state


def test_older_workers_records_and_tombstones_are_read() -> None:
    cases: list[tuple[bytes | None, TargetState]] = [
        (b'{"state":"PAUSED"}', TargetState.PAUSED),
        (b'{"state":"STARTED","state.v2":null}', TargetState.STARTED),
        (b'{"state":"STARTED","state.v2":7}', TargetState.STARTED),
        (b'{"state":"PAUSED","state.v2":"STARTED"}', TargetState.STARTED),
        (None, TargetState.STARTED),
        (b"null", TargetState.STARTED),
    ]
    assert [(content, parse(content)) for content, _ in cases] == cases


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"1", b'{"state":"ASLEEP"}', b'{"state":["PAUSED"]}', b"\xff"])
def test_what_connect_ignores_changes_nothing(content: bytes) -> None:
    assert parse(content) is None

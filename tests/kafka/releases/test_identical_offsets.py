"""What copies with identical offsets need of brokers: markers, filler that is deleted, and which right they take."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from mirrorless.batches.filler import FILLER_RECORDS, filler
from mirrorless.protocol.cluster_client import EARLIEST, ClusterClient
from mirrorless.protocol.markers import delete_records, write_markers
from tests.support.identical import assert_identical, delete_before, ends, on_broker, records_at
from tests.support.offsets import transactions
from tests.support.releases import CURRENT, start_release
from tests.support.world import World, fill

if TYPE_CHECKING:
    from pathlib import Path

    from mirrorless.local.embedded_kafka import EmbeddedCluster
    from tests.support.releases import Releases

LOWER_EPOCH, NOT_AUTHORIZED, POLICY_VIOLATION = 47, 31, 44
START: Final = 3 * FILLER_RECORDS + 17
AUTHORIZER: Final = {
    "2.8.2": "kafka.security.authorizer.AclAuthorizer",
    "3.6.2": "kafka.security.authorizer.AclAuthorizer",
    "3.9.1": "kafka.security.authorizer.AclAuthorizer",
}


def create(cluster: EmbeddedCluster, topic: str, **config: str) -> AdminClient:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_topics([NewTopic(topic, 1, 1, config=config)])[topic].result()
    until = time.monotonic() + 60
    while topic not in admin.list_topics(timeout=60).topics:
        assert time.monotonic() < until
    return admin


@pytest.mark.parametrize("release", ["2.8.2", "3.6.2", CURRENT])
def test_a_log_begins_at_an_offset_and_has_holes(releases: Releases, release: str) -> None:
    cluster = releases[release]
    create(cluster, "identical")
    place = ("identical", 0)

    async def begin(client: ClusterClient, node: int) -> None:
        at = 0
        while at < START:
            count = min(FILLER_RECORDS, START - at)
            (answer,) = await client.append(
                node, [(place, filler(count, producer_id=1 << 61, base_sequence=at))], timeout_ms=30_000
            )
            assert (answer.error_code, answer.base_offset) == (0, at)
            at += count
        assert await delete_records(client, node, {place: START}) == {place: 0}
        assert (await client.offsets(node, [place], at=EARLIEST))[place].offset == START

    async def markers(client: ClusterClient, node: int) -> None:
        async def write(epoch: int, count: int) -> tuple[int, int]:
            before = (await client.log_ends(node, [place]))[place].offset
            code = await write_markers(client, node, place, producer=77, epoch=epoch, count=count)
            return code, (await client.log_ends(node, [place]))[place].offset - before

        assert await write(3, 1_000) == (0, 1_000)
        assert await write(3, 1) == (0, 1)  # the same again takes another offset
        assert await write(2, 1) == (LOWER_EPOCH, 0)
        assert await write(4, 2) == (0, 2)

    on_broker(cluster, "identical", begin)
    fill(cluster, "identical", [b"first"])
    on_broker(cluster, "identical", markers)
    fill(cluster, "identical", [b"second"])
    for isolation in ("read_committed", "read_uncommitted"):
        found = [(one.offset, one.value) for one in records_at(cluster, "identical", isolation=isolation)[0]]
        assert found == [(START, b"first"), (START + 1_004, b"second")]


@pytest.mark.parametrize(
    ("here", "there"), [("2.8.2", CURRENT), (CURRENT, "2.8.2"), ("3.6.2", CURRENT), (CURRENT, "3.6.2")]
)
def test_every_record_has_its_offset(releases: Releases, tmp_path: Path, here: str, there: str) -> None:
    world = World(releases[here], releases[there], tmp_path, extra={"mirrorless.offsets": "identical"})
    topic = world.topic()
    fill(world.source, topic, [b"%d" % number for number in range(3_000)])
    delete_before(world.source, topic, 2_500)
    transactions(world.source, topic, 9, records=5, aborted_every=3)
    world.copy_to_the_end()
    transactions(world.source, topic, 9, records=5, aborted_every=2)
    fill(world.source, topic, [b"last"])
    world.copy_to_the_end()
    assert assert_identical(world, topic) > 500
    assert ends(world.source, topic) == ends(world.target, world.remote(topic))


@pytest.mark.parametrize(("policy", "code"), [("compact", POLICY_VIOLATION), ("compact,delete", 0)])
def test_only_a_policy_with_delete_allows_that(releases: Releases, policy: str, code: int) -> None:
    topic = f"policy-{policy.replace(',', '-')}"
    create(releases[CURRENT], topic, **{"cleanup.policy": policy})
    place = (topic, 0)

    async def fill_and_delete(client: ClusterClient, node: int) -> None:
        (answer,) = await client.append(
            node, [(place, filler(10, producer_id=1 << 61, base_sequence=0))], timeout_ms=30_000
        )
        assert answer.error_code == 0  # its records have keys
        assert await delete_records(client, node, {place: 10}) == {place: code}

    on_broker(releases[CURRENT], topic, fill_and_delete)


@pytest.mark.parametrize(("release", "code"), [("2.8.2", NOT_AUTHORIZED), ("3.6.2", NOT_AUTHORIZED), ("3.9.1", 0)])
def test_markers_need_alter_and_before_that_cluster_action(release: str, code: int) -> None:
    """KIP-1037. Kafka 4.3 is as 3.9: see the tests of each right."""
    more = {"authorizer.class.name": AUTHORIZER[release], "allow.everyone.if.no.acl.found": "true"}
    with start_release(release, **more) as cluster:
        admin = create(cluster, "t")
        codes: list[int] = []

        async def write(client: ClusterClient, node: int) -> None:
            codes.append(await write_markers(client, node, ("t", 0), producer=77, epoch=0, count=1))

        def allow(operation: AclOperation) -> AclBinding:
            user, allowed = "User:ANONYMOUS", AclPermissionType.ALLOW
            kind, pattern = ResourceType.BROKER, ResourcePatternType.LITERAL
            return AclBinding(kind, "kafka-cluster", pattern, user, "*", operation, allowed)

        alter, action = allow(AclOperation.ALTER), allow(AclOperation.CLUSTER_ACTION)
        admin.create_acls([alter])[alter].result()
        time.sleep(1)
        on_broker(cluster, "t", write)
        admin.create_acls([action])[action].result()
        only = AclBindingFilter(
            ResourceType.BROKER,
            "kafka-cluster",
            ResourcePatternType.LITERAL,
            "User:ANONYMOUS",
            None,  # type: ignore[arg-type]
            AclOperation.ALTER,
            AclPermissionType.ALLOW,
        )
        admin.delete_acls([only])[only].result()
        time.sleep(1)
        on_broker(cluster, "t", write)
        assert codes == [code, 0]

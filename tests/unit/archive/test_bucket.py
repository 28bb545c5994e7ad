"""An archive in S3 (moto's server): the same objects, created once."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import boto3
import pytest

from mirrorless.archive.chain import read_chain
from mirrorless.archive.object_store import ArchiveError, NoSuchObject, open_store, require_conditions
from mirrorless.archive.upkeep import Proof, faults, prune
from mirrorless.archive.view import ArchiveView
from tests.support.archived import LOG, plain, put, remember
from tests.support.aws import aws_server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mirrorless.archive.object_store import ObjectStore

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    with aws_server() as variables:
        for name, value in (variables | {"AWS_DEFAULT_REGION": "eu-west-1", "AWS_REGION": "eu-west-1"}).items():
            monkeypatch.setenv(name, value)
        where = {"LocationConstraint": "eu-west-1"}
        boto3.client("s3").create_bucket(Bucket="vault", CreateBucketConfiguration=where)
        yield open_store("s3://vault/some/prefix")


def test_an_archive_in_a_bucket(store: ObjectStore) -> None:
    require_conditions(store)
    for first in (0, 10, 20):
        assert put(store, first, [plain(first)]) == first + 10
    assert put(store, 10, [plain(10), plain(20)]) == -1
    remember(store, {("orders", 0): 30})
    remember(store, {("orders", 0): 30}, at_ms=5_000)
    assert [one.first for one in read_chain(store, LOG).links] == [0, 10, 20]
    assert list(faults(store, Proof())) == []
    records, _ = ArchiveView(store).records(("orders", 0), 12, 1 << 20)
    assert records == plain(10)
    assert prune(store, before_ms=3_000)[0] == 3
    assert ArchiveView(store).logs["orders", 0].start == 20
    with pytest.raises(NoSuchObject, match="there is no topics/"):
        store.read(LOG.object(0, 0))


def test_a_store_that_ignores_conditions_is_refused(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(store), "create", lambda *_: True)
    with pytest.raises(ArchiveError, match="ignores If-None-Match"):
        require_conditions(store)


def test_a_bucket_that_is_not_there_is_one_line(store: ObjectStore) -> None:
    missing = open_store("s3://another/prefix")
    with pytest.raises(ArchiveError, match=r"s3://another/prefix: x: .*NoSuchBucket"):
        missing.create("x", io.BytesIO(b"y"))

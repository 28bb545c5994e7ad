"""What a cluster does not have is a result, what it cannot say now is an error; quotas as brokers answer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from mirrorless.clusters import cluster_requests
from mirrorless.clusters.cluster_requests import NotThere, asked
from mirrorless.clusters.quotas import QuotaEntity, quotas_of, set_quotas
from mirrorless.clusters.scram_users import scram_users
from mirrorless.errors import ClusterUnavailable
from mirrorless.kafka_python.errors import (
    ClusterAuthorizationFailedError,
    IncompatibleBrokerVersion,
    KafkaConnectionError,
    SecurityDisabledError,
    for_code,
)
from mirrorless.settings import Cluster

if TYPE_CHECKING:
    from collections.abc import Callable

CLUSTER = Cluster(alias="b", bootstrap_servers="b:1")
BILLING, EVERY = QuotaEntity((("user", "billing"),)), QuotaEntity((("user", ""),))


class Broker:
    """A client whose requests get this answer."""

    def __init__(self, answer: object) -> None:
        self.answer = answer
        self.requests: list[Any] = []
        self.is_closed = False

    def ask_any_broker(self, request: Any) -> Any:  # noqa: ANN401 -- the library's messages
        self.requests.append(request)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> Callable[[object], Broker]:
    def answer(one: object) -> Broker:
        broker = Broker(one)
        monkeypatch.setattr(cluster_requests, "admin_client", lambda _: broker)
        return broker

    return answer


def entry(entity: QuotaEntity, **fields: object) -> object:
    parts = [SimpleNamespace(entity_type=kind, entity_name=name or None) for kind, name in entity.parts]
    return SimpleNamespace(entity=parts, **fields)


@pytest.mark.parametrize(
    ("error", "result"),
    [
        (ClusterAuthorizationFailedError(), ("no right to see hats of cluster b; grant DESCRIBE on the cluster", True)),
        (SecurityDisabledError(), ("cluster b has no authorizer", False)),
        (IncompatibleBrokerVersion(), ("the brokers of cluster b do not report hats", False)),
    ],
)
def test_what_a_cluster_does_not_have_is_a_result(
    answering: Callable[[object], Broker], error: Exception, result: tuple[str, bool]
) -> None:
    broker = answering(error)
    found = asked(CLUSTER, lambda client: client.ask_any_broker(None), what="hats", right="DESCRIBE")
    assert found == NotThere(*result)
    assert broker.is_closed


@pytest.mark.parametrize("error", [KafkaConnectionError("gone"), OSError("gone"), for_code(7)()])
def test_what_it_cannot_say_now_is_an_error(answering: Callable[[object], Broker], error: Exception) -> None:
    answering(error)
    with pytest.raises(ClusterUnavailable):
        quotas_of(CLUSTER)


def test_quotas_are_read_by_what_they_are_for(answering: Callable[[object], Broker]) -> None:
    values = [SimpleNamespace(key="producer_byte_rate", value=5.0)]
    answering(SimpleNamespace(error_code=0, entries=[entry(EVERY, values=values), entry(BILLING, values=values)]))
    assert quotas_of(CLUSTER) == {EVERY: {"producer_byte_rate": 5.0}, BILLING: {"producer_byte_rate": 5.0}}
    answering(SimpleNamespace(error_code=31, entries=None))
    found = quotas_of(CLUSTER)
    assert isinstance(found, NotThere)
    assert found.lacks_right


def test_each_quota_has_a_result_of_its_own(answering: Callable[[object], Broker]) -> None:
    results = [entry(BILLING, error_code=31, error_message=None), entry(EVERY, error_code=0, error_message=None)]
    broker = answering(SimpleNamespace(entries=results))
    done = set_quotas(CLUSTER, [(EVERY, {"x": 1.0}), (BILLING, {"x": 1.0, "y": 2.0})])
    assert done == [None, "ClusterAuthorizationFailedError; grant ALTER_CONFIGS on the cluster"]
    (request,) = broker.requests
    assert [[part.entity_name for part in one.entity] for one in request.entries] == [[None], ["billing"]]
    assert not request.validate_only


def test_users_with_their_mechanisms(answering: Callable[[object], Broker]) -> None:
    infos = [SimpleNamespace(mechanism=1), SimpleNamespace(mechanism=9)]
    answering(SimpleNamespace(error_code=0, results=[SimpleNamespace(user="app", credential_infos=infos)]))
    assert scram_users(CLUSTER) == frozenset({("app", "SCRAM-SHA-256"), ("app", "mechanism 9")})

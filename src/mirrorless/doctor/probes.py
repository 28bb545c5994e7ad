"""Checks rights with requests that brokers authorize like the real ones, and that cannot change anything.

A right is tested by requests without effect: producing no records, fetching beyond every end, altering no config.
Brokers check rights first (`KafkaApis`, `ControllerApis`), so the response is an authorization error or another one,
whether the topic exists or not; and no right is needed to ask. Brokers report the rights on the cluster themselves
(DescribeCluster, KIP-700).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self

from mirrorless.clusters.effective_configs import ask_creation
from mirrorless.clusters.kafka_admin_client import admin_client
from mirrorless.clusters.side_by_side import each
from mirrorless.errors import ClusterUnavailable
from mirrorless.kafka_python import errors as kafka_errors
from mirrorless.kafka_python.admin import ACLOperation
from mirrorless.kafka_python.messages import (
    AlterClientQuotasRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteRecordsRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeGroupsRequest,
    HeartbeatRequest,
    IncrementalAlterConfigsRequest,
    MetadataRequest,
    ProduceRequest,
)
from mirrorless.protocol import requests
from mirrorless.protocol.fetch_session import Asked
from mirrorless.rights import Operation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from types import TracebackType

    from mirrorless.clusters.effective_configs import EffectiveConfigs
    from mirrorless.settings import Cluster

_A_REQUEST: Final = 500
_AT_ONCE: Final = 100
_TIMEOUT_MS: Final = 15_000
_TOPIC: Final = 2
"""The protocol's number of the resource type topic."""
_ACKS_ALL: Final = -1
_BY_NAME: Final = 12
"""The last version of Produce that identifies topics by name, not by id."""
_BEHIND_EVERY_END: Final = 1 << 62
_TOPIC_REFUSED: Final = 29
_GROUP_REFUSED: Final = 30
_CLUSTER_REFUSED: Final = 31
_REFUSED: Final = (_TOPIC_REFUSED, _GROUP_REFUSED, _CLUSTER_REFUSED)
_NOBODY: Final = "mirrorless-doctor"


class NotSaid(Exception):
    """A broker does not answer such a request; the text says why."""


class Probes:
    """Asks one cluster, as the user of its settings, also from several threads.

    Raises `ClusterUnavailable` if it does not answer at all.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._alias = cluster.alias
        try:
            self._client: Any = admin_client(cluster)
        except (kafka_errors.KafkaError, OSError) as error:
            raise ClusterUnavailable(str(error) or type(error).__name__, cluster=cluster.alias) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    def refused_topics(self, operation: Operation, topics: Iterable[str]) -> list[str]:
        """Return the topics on which the user lacks the right, whether they exist or not; raises `NotSaid`."""
        ask = _TOPICS[operation]
        return [topic for some in _chunks(topics) for topic, code in ask(self, some) if code in _REFUSED]

    def refused_groups(self, operation: Operation, groups: Iterable[str]) -> list[str]:
        """Return the groups on which the user lacks the right, whether they exist or not; raises `NotSaid`."""
        if operation is Operation.DESCRIBE:
            return [
                one.group_id
                for some in _chunks(groups)
                for one in self.ask(DescribeGroupsRequest(groups=some)).groups
                if one.error_code in _REFUSED
            ]
        asked = list(groups)
        beats = [HeartbeatRequest(group_id=group, generation_id=-1, member_id=_NOBODY) for group in asked]
        answers = each([partial(self.ask, beat) for beat in beats], at_once=_AT_ONCE)
        return [group for group, answer in zip(asked, answers, strict=True) if answer.error_code in _REFUSED]

    def may_on_cluster(self, operation: Operation) -> bool:
        """Whether the user has a right on the cluster; raises `NotSaid` for brokers before 2.8.

        Brokers list rights only with DESCRIBE (`KafkaApis.handleDescribeCluster`), so DESCRIBE_CONFIGS is
        tested by describing the cluster-wide configs, which any broker returns, and ALTER_CONFIGS by validating the
        removal of a quota that does not exist (`ControllerApis.handleAlterClientQuotas`).
        """
        if operation is Operation.DESCRIBE_CONFIGS:
            described = self.ask(requests.describe_broker(None, []))
            return all(one.error_code not in _REFUSED for one in described.results)
        if operation is Operation.ALTER_CONFIGS:
            answer = self.ask(_no_quota())
            return all(one.error_code not in _REFUSED for one in answer.entries)
        response = self.ask(DescribeClusterRequest(include_cluster_authorized_operations=True))
        return int(ACLOperation[operation.value]) in response.authorized_operations

    def creation(
        self, topic: str, *, partitions: int, replication_factor: int, config: Mapping[str, str]
    ) -> EffectiveConfigs:
        """Return the configs that a new topic would get; raises `NotSaid`."""

        def ask(request: Any) -> Any:  # noqa: ANN401 -- the library's messages
            return self.ask(request, controller=True)

        return ask_creation(ask, topic, partitions=partitions, replication_factor=replication_factor, config=config)

    def ask(self, request: Any, *, controller: bool = False, node: int | None = None) -> Any:  # noqa: ANN401 -- as above
        """Send any request to some broker, to the controller or to the broker `node`; raises `NotSaid`."""
        try:
            if node is not None:
                return self._client.ask_broker(node, request)
            return self._client.ask_controller(request) if controller else self._client.ask_any_broker(request)
        except kafka_errors.IncompatibleBrokerVersion as error:
            raise NotSaid("the brokers are too old for this check") from error
        except kafka_errors.KafkaError as error:
            raise NotSaid(str(error) or type(error).__name__) from error

    def _described(self, topics: Sequence[str]) -> Iterator[tuple[str, int]]:
        wanted = [MetadataRequest.MetadataRequestTopic(name=topic) for topic in topics]
        response = self.ask(MetadataRequest(topics=wanted, allow_auto_topic_creation=False))
        return ((one.name, one.error_code) for one in response.topics)

    def _fetched(self, topics: Sequence[str]) -> Iterator[tuple[str, int]]:
        request = requests.fetch(Asked([((topic, 0), _BEHIND_EVERY_END, -1) for topic in topics], None))
        return ((one.place[0], one.error_code) for one in requests.fetched(self.ask(request), None))

    def _produced(self, topics: Sequence[str]) -> Iterator[tuple[str, int]]:
        part, whole = ProduceRequest.TopicProduceData.PartitionProduceData, ProduceRequest.TopicProduceData
        request = ProduceRequest(
            transactional_id=None,
            acks=_ACKS_ALL,
            timeout_ms=_TIMEOUT_MS,
            topic_data=[whole(name=topic, partition_data=[part(index=0, records=b"")]) for topic in topics],
            max_version=_BY_NAME,
        )
        return ((one.place[0], one.error_code) for one in requests.appended(self.ask(request), None))

    def _created(self, topics: Sequence[str]) -> Iterator[tuple[str, int]]:
        new = [
            CreateTopicsRequest.CreatableTopic(
                name=topic, num_partitions=1, replication_factor=1, assignments=[], configs=[]
            )
            for topic in topics
        ]
        request = CreateTopicsRequest(topics=new, timeout_ms=_TIMEOUT_MS, validate_only=True)
        return ((one.name, one.error_code) for one in self.ask(request, controller=True).topics)

    def _grown(self, topics: Sequence[str]) -> Iterator[tuple[str, int]]:
        # To one partition, which every topic has: no broker could add any, even without validate-only.
        new = [CreatePartitionsRequest.CreatePartitionsTopic(name=topic, count=1, assignments=None) for topic in topics]
        request = CreatePartitionsRequest(topics=new, timeout_ms=_TIMEOUT_MS, validate_only=True)
        return ((one.name, one.error_code) for one in self.ask(request, controller=True).results)

    def _emptied(self, topics: Sequence[str]) -> Iterator[tuple[str, int]]:
        # Before offset 0, where there is no record.
        part, whole = (
            DeleteRecordsRequest.DeleteRecordsTopic.DeleteRecordsPartition,
            DeleteRecordsRequest.DeleteRecordsTopic,
        )
        wanted = [whole(name=topic, partitions=[part(partition_index=0, offset=0)]) for topic in topics]
        response = self.ask(DeleteRecordsRequest(topics=wanted, timeout_ms=_TIMEOUT_MS))
        return ((one.name, part.error_code) for one in response.topics for part in one.partitions)

    def _configs_described(self, topics: Sequence[str]) -> Iterator[tuple[str, int]]:
        wanted = [
            DescribeConfigsRequest.DescribeConfigsResource(
                resource_type=_TOPIC, resource_name=topic, configuration_keys=["cleanup.policy"]
            )
            for topic in topics
        ]
        request = DescribeConfigsRequest(resources=wanted, include_synonyms=False, include_documentation=False)
        return ((one.resource_name, one.error_code) for one in self.ask(request).results)

    def _configs_altered(self, topics: Sequence[str]) -> Iterator[tuple[str, int]]:
        wanted = [
            IncrementalAlterConfigsRequest.AlterConfigsResource(resource_type=_TOPIC, resource_name=topic, configs=[])
            for topic in topics
        ]
        request = IncrementalAlterConfigsRequest(resources=wanted, validate_only=True)
        return ((one.resource_name, one.error_code) for one in self.ask(request, controller=True).responses)


_TOPICS: Final[Mapping[Operation, Callable[[Probes, Sequence[str]], Iterator[tuple[str, int]]]]] = {
    Operation.DESCRIBE: Probes._described,
    Operation.READ: Probes._fetched,
    Operation.WRITE: Probes._produced,
    Operation.CREATE: Probes._created,
    Operation.DELETE: Probes._emptied,
    Operation.ALTER: Probes._grown,
    Operation.DESCRIBE_CONFIGS: Probes._configs_described,
    Operation.ALTER_CONFIGS: Probes._configs_altered,
}


def _chunks(names: Iterable[str]) -> Iterator[list[str]]:
    all_names = list(names)
    return (all_names[at : at + _A_REQUEST] for at in range(0, len(all_names), _A_REQUEST))


def _no_quota() -> AlterClientQuotasRequest:
    entry = AlterClientQuotasRequest.EntryData
    who = entry.EntityData(entity_type="user", entity_name=_NOBODY)
    return AlterClientQuotasRequest(
        entries=[entry(entity=[who], ops=[entry.OpData(key="request_percentage", value=0.0, remove=True)])],
        validate_only=True,
    )

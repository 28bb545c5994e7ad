"""In place of confluent-kafka's clients, and of kafka-python's admin client: what the product uses of them.

`clusters.clients` and `protocol.clients` make them. As librdkafka does, requests that only read are sent again when a
connection is cut; of one that changes something it is not known whether it was carried out.
"""

# ruff: noqa: ARG002 -- they take what the real ones take
from __future__ import annotations

from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from confluent_kafka import ConsumerGroupState, IsolationLevel, KafkaError, KafkaException, Uuid
from confluent_kafka import TopicPartition as ConfluentTopicPartition
from confluent_kafka.admin import BrokerMetadata, ClusterMetadata, OffsetSpec, PartitionMetadata, TopicMetadata
from kafka.partitioner.default import murmur2

from tests.simulation.administration import DEFAULTS, IDLE_MS, LEADER_NOT_AVAILABLE, NOT_EMPTY, AclEntry
from tests.simulation.network import ConnectionLost, Network, SharedLink, Unanswered, Wire, current_process
from tests.simulation.system_threads import Waiting
from tests.simulation.world import clock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mirrorless.clusters.topic_partition import TopicPartition
    from tests.simulation.administration import AdministeredCluster, Record

_REQUEST_S = 30.0
_LOOK_S = 0.05
_LINGER_S = 0.002
_MISSING_S = 5.0
"""`topic.metadata.propagation.max.ms`: how long an unknown topic may have been created just now."""
_EARLIEST, _LATEST, _NEWEST = -2, -1, -3
_MUTATIONS_LOST = 0.5
"""How often a change whose connection was cut is not sent again."""


def cluster_of(settings: Mapping[str, Any]) -> AdministeredCluster:
    """The cluster that settings of either library name."""
    servers = settings.get("bootstrap.servers") or settings["bootstrap_servers"]
    text = servers if isinstance(servers, str) else servers[0]
    world = current_process().world
    return next(one for one in world.clusters.values() if one.address == text)  # type: ignore[attr-defined, return-value]


def _failed(code: int, text: str | None = None) -> KafkaException:
    return KafkaException(KafkaError(code, text) if text else KafkaError(code))


def _done(answer: Any) -> Future[Any]:  # noqa: ANN401 -- anything
    future: Future[Any] = Future()
    if isinstance(answer, BaseException):
        future.set_exception(answer)
    else:
        future.set_result(answer)
    return future


def metadata_of(cluster: AdministeredCluster, only: str | None = None) -> Any:  # noqa: ANN401 -- `ClusterMetadata`
    """What any broker reports of a cluster."""
    found: Any = ClusterMetadata()
    found.cluster_id, found.controller_id = cluster.id, min(cluster.nodes, default=1)
    for node in cluster.nodes:
        broker: Any = BrokerMetadata()
        broker.id, broker.host, broker.port = node, f"{cluster.alias.lower()}{node}.simulated", 9092
        found.brokers[node] = broker
    for name, topic in cluster.topics.items():
        if only not in (None, name):
            continue
        described: Any = TopicMetadata()
        described.topic = name
        for number, partition in enumerate(topic.partitions):
            one: Any = PartitionMetadata()
            one.id, one.leader = number, -1 if partition.leader is None else partition.leader
            one.replicas = one.isrs = [1, 2, 3]
            described.partitions[number] = one
        found.topics[name] = described
    if only is not None and only not in found.topics:
        missing: Any = TopicMetadata()
        missing.topic, missing.error = only, KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
        found.topics[only] = missing
    return found


class SimulatedAdmin:
    """In place of `confluent_kafka.admin.AdminClient`: each call waits for its answer, and returns futures with it."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._cluster = cluster_of(settings)
        self._wire = Wire(self._cluster)

    def poll(self, seconds: float = 0.0) -> int:
        """Nothing is heard."""
        return 0

    def list_topics(self, topic: str | None = None, timeout: float = _REQUEST_S) -> Any:  # noqa: ANN401
        """Metadata of the cluster."""
        return self._read(lambda: metadata_of(self._cluster, topic), timeout)

    def describe_cluster(self, **_: Any) -> Future[Any]:  # noqa: ANN401
        """Whether it answers."""
        try:
            return _done(self._read(lambda: SimpleNamespace(cluster_id=self._cluster.id), 5.0))
        except KafkaException as error:
            return _done(error)

    def describe_topics(self, topics: Any, request_timeout: float = _REQUEST_S) -> dict[str, Future[Any]]:  # noqa: ANN401
        """Ids and partitions of topics."""
        names = list(topics.topic_names)

        def look() -> dict[str, Any]:
            found: dict[str, Any] = {}
            for name in names:
                topic = self._cluster.topics.get(name)
                if topic is None:
                    found[name] = _failed(KafkaError.UNKNOWN_TOPIC_OR_PART)
                    continue
                high, low = topic.id.int >> 64, topic.id.int & (1 << 64) - 1
                partitions = [SimpleNamespace(id=number) for number in range(len(topic.partitions))]
                found[name] = SimpleNamespace(topic_id=Uuid(high, low), partitions=partitions)
            return found

        return self._each(names, look, request_timeout)

    def list_offsets(
        self,
        wanted: Mapping[ConfluentTopicPartition, OffsetSpec],
        *,
        isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
        request_timeout: float = _REQUEST_S,
    ) -> dict[ConfluentTopicPartition, Future[Any]]:
        """Offsets of partitions; one without a leader is not answered in time."""
        committed = isolation_level is IsolationLevel.READ_COMMITTED

        def look() -> dict[ConfluentTopicPartition, Any]:
            return {place: self._offset((place.topic, place.partition), wanted[place], committed) for place in wanted}

        return self._each(list(wanted), look, request_timeout)

    def _offset(self, place: TopicPartition, spec: OffsetSpec, committed: bool) -> Any:  # noqa: ANN401
        led = self._cluster.led(place)
        if isinstance(led, int):
            return _failed(KafkaError._TIMED_OUT if led == LEADER_NOT_AVAILABLE else led)
        log = led.log
        match type(spec).__name__:
            case "LatestSpec":
                return SimpleNamespace(offset=log.stable if committed else log.high_watermark, timestamp=-1)
            case "EarliestSpec":
                return SimpleNamespace(offset=log.start, timestamp=-1)
            case "MaxTimestampSpec":
                newest = log.batches[-1].header.max_timestamp_ms if log.batches else -1
                return SimpleNamespace(offset=log.end - 1 if newest >= 0 else -1, timestamp=newest)
        raise NotImplementedError(spec)

    def create_topics(self, topics: Iterable[Any], *, validate_only: bool = False, **_: Any) -> dict[str, Future[Any]]:  # noqa: ANN401
        """Create topics."""
        some = list(topics)

        def carry_out() -> dict[str, Any]:
            found: dict[str, Any] = {}
            for one in some:
                if one.topic in self._cluster.topics:
                    found[one.topic] = _failed(KafkaError.TOPIC_ALREADY_EXISTS)
                    continue
                if not validate_only:
                    count = one.num_partitions if one.num_partitions > 0 else 1
                    self._cluster.create(one.topic, count, **(one.config or {}))
                found[one.topic] = None
            return found

        return self._each([one.topic for one in some], carry_out, _REQUEST_S, changes=True)

    def delete_topics(self, topics: Iterable[str], **_: Any) -> dict[str, Future[Any]]:  # noqa: ANN401
        """Delete topics by name."""
        some = list(topics)

        def carry_out() -> dict[str, Any]:
            found: dict[str, Any] = {}
            for name in some:
                there = name in self._cluster.topics
                found[name] = None if there else _failed(KafkaError.UNKNOWN_TOPIC_OR_PART)
                if there:
                    self._cluster.delete(name)
            return found

        return self._each(some, carry_out, _REQUEST_S, changes=True)

    def create_partitions(self, counts: Iterable[Any], **_: Any) -> dict[str, Future[Any]]:  # noqa: ANN401
        """Add partitions."""
        some = list(counts)

        def carry_out() -> dict[str, Any]:
            found: dict[str, Any] = {}
            for one in some:
                topic = self._cluster.topics.get(one.topic)
                if topic is None:
                    found[one.topic] = _failed(KafkaError.UNKNOWN_TOPIC_OR_PART)
                elif one.new_total_count <= len(topic.partitions):
                    found[one.topic] = _failed(KafkaError.INVALID_PARTITIONS)
                else:
                    self._cluster.add_partitions(one.topic, one.new_total_count - len(topic.partitions))
                    found[one.topic] = None
            return found

        return self._each([one.topic for one in some], carry_out, _REQUEST_S, changes=True)

    def describe_configs(self, resources: Sequence[Any], **_: Any) -> dict[Any, Future[Any]]:  # noqa: ANN401
        """Configs of topics, and of a broker."""
        cluster = self._cluster

        def look() -> dict[Any, Any]:
            found: dict[Any, Any] = {}
            for one in resources:
                if one.restype.name == "BROKER":
                    configs = {"connections.max.idle.ms": (str(IDLE_MS), 5), "message.max.bytes": ("1048588", 5)}
                elif one.name not in cluster.topics:
                    found[one] = _failed(KafkaError.UNKNOWN_TOPIC_OR_PART)
                    continue
                else:
                    configs = cluster.configs(one.name)
                found[one] = {
                    name: SimpleNamespace(
                        name=name, value=value, source=origin, is_read_only=False, is_sensitive=False, is_default=False
                    )
                    for name, (value, origin) in configs.items()
                }
            return found

        return self._each(list(resources), look, _REQUEST_S)

    def incremental_alter_configs(self, resources: Sequence[Any], **_: Any) -> dict[Any, Future[Any]]:  # noqa: ANN401
        """Change configs of topics."""
        cluster = self._cluster

        def carry_out() -> dict[Any, Any]:
            found: dict[Any, Any] = {}
            for one in resources:
                if one.name not in cluster.topics:
                    found[one] = _failed(KafkaError.UNKNOWN_TOPIC_OR_PART)
                    continue
                for entry in one.incremental_configs:
                    deletes = entry.incremental_operation.name == "DELETE"
                    cluster.set_config(one.name, entry.name, None if deletes else entry.value)
                found[one] = None
            return found

        return self._each(list(resources), carry_out, _REQUEST_S, changes=True)

    def create_acls(self, acls: Sequence[Any], **_: Any) -> dict[Any, Future[Any]]:  # noqa: ANN401
        """Add ACLs."""

        def carry_out() -> dict[Any, Any]:
            self._cluster.acls.update(map(_entry, acls))
            return dict.fromkeys(acls)

        return self._each(list(acls), carry_out, _REQUEST_S, changes=True)

    def delete_acls(self, acls: Sequence[Any], **_: Any) -> dict[Any, Future[Any]]:  # noqa: ANN401
        """Delete ACLs."""

        def carry_out() -> dict[Any, Any]:
            self._cluster.acls.difference_update(map(_entry, acls))
            return {one: [] for one in acls}

        return self._each(list(acls), carry_out, _REQUEST_S, changes=True)

    def list_consumer_groups(self, **_: Any) -> Future[Any]:  # noqa: ANN401
        """All groups with their states."""

        def look() -> Any:  # noqa: ANN401
            valid = [
                SimpleNamespace(group_id=name, state=_state(group.members))
                for name, group in sorted(self._cluster.groups.items())
            ]
            return SimpleNamespace(valid=valid, errors=[])

        try:
            return _done(self._read(look, _REQUEST_S))
        except KafkaException as error:
            return _done(error)

    def describe_consumer_groups(self, groups: Sequence[str], **_: Any) -> dict[str, Future[Any]]:  # noqa: ANN401
        """Members of groups."""

        def look() -> dict[str, Any]:
            known = self._cluster.groups
            members = {one: sorted(known[one].members) if one in known else [] for one in groups}
            return {one: SimpleNamespace(members=some, state=_state(some)) for one, some in members.items()}

        return self._each(list(groups), look, _REQUEST_S)

    def _read(self, look: Callable[[], Any], seconds: float) -> Any:  # noqa: ANN401
        try:
            return self._wire.simply(look, seconds=seconds)
        except Unanswered:
            raise _failed(KafkaError._TRANSPORT, "no broker answers") from None

    def _each(
        self, keys: Sequence[Any], carry_out: Callable[[], Mapping[Any, Any]], seconds: float, *, changes: bool = False
    ) -> dict[Any, Future[Any]]:
        if changes:
            self._wire.process.about_to_write()
        again = not changes or self._wire.process.world.random.random() > _MUTATIONS_LOST
        try:
            found = self._wire.simply(carry_out, seconds=seconds, again=again)
        except Unanswered:
            found = dict.fromkeys(keys, _failed(KafkaError._TIMED_OUT, "no answer"))
        except ConnectionLost:
            found = dict.fromkeys(keys, _failed(KafkaError._TRANSPORT, "connection lost"))
        return {key: _done(found[key]) for key in keys}


def _state(members: Iterable[str]) -> ConsumerGroupState:
    return ConsumerGroupState.STABLE if any(members) else ConsumerGroupState.EMPTY


def _entry(acl: Any) -> AclEntry:  # noqa: ANN401 -- a binding, or a filter
    return AclEntry(
        acl.restype.name,
        acl.name,
        acl.resource_pattern_type.name,
        acl.principal,
        acl.host,
        acl.operation.name,
        acl.permission_type.name,
    )


class Message:
    """What a consumer returns, and what a delivery report is about."""

    def __init__(self, place: TopicPartition, offset: int, record: Record | None, error: KafkaError | None) -> None:
        self._place = place
        self._offset = offset
        self._record = record
        self._error = error

    def topic(self) -> str:
        """Its topic."""
        return self._place[0]

    def partition(self) -> int:
        """Its partition."""
        return self._place[1]

    def offset(self) -> int:
        """Its offset, or where the partition ends."""
        return self._offset

    def error(self) -> KafkaError | None:
        """What it is instead of a record."""
        return self._error

    def key(self) -> bytes | None:
        """The record's key."""
        return None if self._record is None else self._record.key

    def value(self) -> bytes | None:
        """The record's value."""
        return None if self._record is None else self._record.value

    def headers(self) -> list[tuple[str, bytes]] | None:
        """The record's headers."""
        return None if self._record is None else self._record.headers or None

    def timestamp(self) -> tuple[int, int]:
        """Its kind, and ms since 1970."""
        return (1, -1 if self._record is None else self._record.timestamp_ms)


class SimulatedConsumer:
    """In place of `confluent_kafka.Consumer`, for assigned partitions; fetches while it is waited for only."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._cluster = cluster_of(settings)
        self._wire = Wire(self._cluster)
        self._committed = settings.get("isolation.level", "read_committed") == "read_committed"
        self._reports_ends = bool(settings.get("enable.partition.eof"))
        self._resets = settings.get("auto.offset.reset", "latest") != "error"
        self._at: dict[TopicPartition, int] = {}
        self._ids: dict[TopicPartition, object] = {}
        self._ended: dict[TopicPartition, int] = {}
        self._messages: deque[Message] = deque()

    def list_topics(self, topic: str | None = None, timeout: float = _REQUEST_S) -> Any:  # noqa: ANN401
        """Metadata of the cluster, or of a topic."""
        try:
            return self._wire.simply(lambda: metadata_of(self._cluster, topic), seconds=timeout)
        except Unanswered:
            raise _failed(KafkaError._TRANSPORT, "no broker answers") from None

    def get_watermark_offsets(self, place: ConfluentTopicPartition, timeout: float = _REQUEST_S) -> tuple[int, int]:
        """The start and the end of a partition."""

        def look() -> tuple[int, int] | None:
            led = self._cluster.led((place.topic, place.partition))
            if isinstance(led, int):
                return None
            return led.log.start, led.log.stable if self._committed else led.log.high_watermark

        try:
            found = self._wire.simply(look, seconds=timeout)
        except Unanswered:
            raise _failed(KafkaError._TRANSPORT, "no broker answers") from None
        if found is None:
            raise _failed(KafkaError.UNKNOWN_TOPIC_OR_PART)
        return found  # type: ignore[no-any-return]

    def assign(self, places: Sequence[ConfluentTopicPartition]) -> None:
        """Begin to read partitions at their offsets."""
        self._at = {(one.topic, one.partition): one.offset for one in places}
        self._ids, self._ended = {}, {}
        self._messages.clear()

    def unassign(self) -> None:
        """Read nothing any more."""
        self.assign([])

    def consume(self, number: int = 1, timeout: float = -1.0) -> list[Message]:
        """Take messages; without any wait for the first one so long."""
        until = clock.monotonic() + timeout
        while not self._messages and self._at:
            left = until - clock.monotonic()
            if left <= 0:
                break
            self._fetch(left)
        if not self._messages and timeout > 0 and not self._at:
            clock.sleep(max(0.0, until - clock.monotonic()))
        return [self._messages.popleft() for _ in range(min(number, len(self._messages)))]

    def poll(self, timeout: float = -1.0) -> Message | None:
        """Take one message."""
        return next(iter(self.consume(1, timeout)), None)

    def close(self) -> None:
        """Leave nothing open."""
        self._at = {}

    def _fetch(self, seconds: float) -> None:
        """Ask the leaders, which wait for records."""
        asked, done = dict(self._at), [False]

        def carry_out(answer: Callable[[Any], None]) -> None:
            if found := self._look(asked):
                answer(found)
                return

            def again() -> None:
                if not done[0]:
                    done[0] = True
                    answer(self._look(asked))

            for place in asked:
                led = self._cluster.led(place)
                if not isinstance(led, int):
                    led.waiting.append(again)
            self._wire.process.world.later(min(seconds, 0.5), None, again)

        try:
            found = self._wire.ask(carry_out, seconds=seconds + 1)
        except Unanswered:
            return
        if asked != self._at:
            return
        for message in found:
            place = (message.topic(), message.partition())
            if message.error() is None:
                self._at[place] = message.offset() + 1
                self._ended.pop(place, None)
            elif message.error().code() == KafkaError._PARTITION_EOF:
                self._at[place] = self._ended[place] = message.offset()
            self._messages.append(message)

    def _look(self, asked: Mapping[TopicPartition, int]) -> list[Message]:
        found: list[Message] = []
        for place, at in asked.items():
            led = self._cluster.led(place)
            if isinstance(led, int):
                if led != LEADER_NOT_AVAILABLE:
                    found.append(Message(place, at, None, KafkaError(led)))
                continue
            log = led.log
            end = log.stable if self._committed else log.high_watermark
            since = log.start if at < 0 else at
            if self._ids.setdefault(place, log.topic_id) != log.topic_id or not log.start <= since <= end:
                self._ids[place] = log.topic_id
                if not self._resets:
                    found.append(Message(place, at, None, KafkaError(KafkaError._AUTO_OFFSET_RESET)))
                    continue
                since = log.start
            aborted = log.aborted_between(since, end) if self._committed and log.ended else []
            records = self._cluster.records(place, since=since, below=end)
            if aborted:
                records = _without(records, log, aborted)
            found += [Message(place, one.offset, one, None) for one in records]
            if self._reports_ends and self._ended.get(place) != end:
                found.append(Message(place, end, None, KafkaError(KafkaError._PARTITION_EOF)))
        return found


def _without(records: list[Record], log: Any, aborted: list[tuple[int, int]]) -> list[Record]:  # noqa: ANN401
    """Leave out the records of aborted transactions."""
    spans = [(one.producer_id, one.first, one.marker) for one in log.ended]
    gone = {
        offset
        for header, _ in log.batches
        for producer, first, marker in spans
        if header.producer_id == producer and header.is_transactional and first <= header.base_offset < marker
        for offset in range(header.base_offset, header.next_offset)
    }
    return [one for one in records if one.offset not in gone]


class SimulatedSender:
    """In place of `confluent_kafka.Producer`: sends in order, again after a cut, until a record's time is over.

    Without idempotence a record whose answer was lost is written twice.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        self._cluster = cluster_of(settings)
        self._process = current_process()
        self._network: Network = self._process.network(self._cluster.alias)
        self._link = SharedLink(self._process, self._cluster, self._network)
        self._patience_s = float(settings.get("message.timeout.ms", 300_000)) / 1000
        self._idempotent = bool(settings.get("enable.idempotence")) or "transactional.id" in settings
        self._transaction: str | None = settings.get("transactional.id")
        self._queue: deque[_Queued] = deque()
        self._reports: deque[Callable[[], None]] = deque()
        self._sending = False
        self._heard = Waiting()
        self._since: dict[TopicPartition, int] = {}

    def produce(
        self,
        topic: str,
        *,
        key: bytes | None = None,
        value: bytes | None = None,
        partition: int = -1,
        timestamp: int = 0,
        headers: Any = (),  # noqa: ANN401
        on_delivery: Callable[[KafkaError | None, Message], None] | None = None,
    ) -> None:
        """Queue a record."""
        self._process.about_to_write(topic)
        now = self._process.world.now
        self._queue.append(_Queued(topic, partition, key, value, now + self._patience_s, now + _MISSING_S, on_delivery))
        if not self._sending:
            self._sending = True
            self._process.call_later(_LINGER_S, self._send)

    def poll(self, timeout: float = 0.0) -> int:
        """Run delivery reports."""
        if not self._reports and timeout > 0:
            self._heard.wait(timeout)
        number = len(self._reports)
        for _ in range(number):
            self._reports.popleft()()
        return number

    def flush(self, timeout: float = -1.0) -> int:
        """Wait until everything is written or given up."""
        until = clock.monotonic() + timeout
        while self._queue or self._reports:
            self.poll()
            if self._queue:
                left = until - clock.monotonic()
                if left <= 0:
                    break
                self._heard.wait(left)
        return len(self._queue)

    def init_transactions(self, timeout: float = -1.0) -> None:
        """Fence producers with this transactional id that began before."""
        epochs = self._cluster.transactions
        self._ask(lambda: epochs.update({self._transaction or "": epochs.get(self._transaction or "", 0) + 1}))
        self._epoch = epochs[self._transaction or ""]

    def begin_transaction(self) -> None:
        """Begin one."""
        self._staged: list[_Queued] = []

    def commit_transaction(self, timeout: float = -1.0) -> None:
        """Write what was staged, unless another producer has fenced this one."""

        def carry_out() -> bool:
            if self._cluster.transactions.get(self._transaction or "", 0) != self._epoch:
                return False
            for one in self._staged:
                self._cluster.produce((one.topic, max(0, one.partition)), [(one.key, one.value)])
            self._staged = []
            return True

        if not self._ask(carry_out):
            raise _failed(KafkaError._FENCED)

    def _ask(self, carry_out: Callable[[], Any]) -> Any:  # noqa: ANN401
        try:
            return Wire(self._cluster).simply(carry_out, seconds=_REQUEST_S)
        except Unanswered:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "no answer", False, True)) from None

    def __len__(self) -> int:
        return len(self._queue)

    def _send(self) -> None:
        """Send the first records; one request is under way at a time."""
        world, cluster = self._process.world, self._cluster
        while self._queue and self._queue[0].until < world.now:
            self._report(self._queue.popleft(), KafkaError(KafkaError._MSG_TIMED_OUT), -1)
        if not self._queue:
            self._sending = False
            return
        if not cluster.nodes:
            self._process.call_later(0.2, self._send)
            return
        some = list(self._queue)
        number = len(some)

        def carry_out(answer: Callable[[Any], None]) -> None:
            answer([self._append(one) for one in some])

        future = self._link.send(cluster.nodes[0], carry_out)

        def heard(answers: list[tuple[int, int]]) -> None:
            kept = []
            for one, (offset, code) in zip(some, answers, strict=True):
                gone = code == KafkaError.UNKNOWN_TOPIC_OR_PART and self._process.world.now > one.missing_until
                if gone:
                    self._report(one, KafkaError(KafkaError._UNKNOWN_TOPIC), -1)
                elif code in (0, 10, 29):
                    self._report(one, KafkaError(code) if code else None, offset)
                else:
                    kept.append(one)
            for _ in range(number):
                self._queue.popleft()
            self._queue.extendleft(reversed(kept))
            self._process.call_later(0.2 if kept else _LINGER_S, self._send)

        future.add_callback(heard)
        future.add_errback(lambda _: self._process.call_later(0.1, self._send))

    def _append(self, one: _Queued) -> tuple[int, int]:
        """What the broker does with a record."""
        if one.written is not None and self._idempotent:
            return one.written
        if self._transaction is not None:
            if one.written is None:
                self._staged.append(one)
            one.written = (-1, 0)
            return one.written
        topic = self._cluster.topics.get(one.topic)
        if topic is None:
            return -1, 3
        partition = one.partition
        if partition < 0:
            partition = (murmur2(one.key or b"") & 0x7FFFFFFF) % len(topic.partitions)
        offset, code = self._cluster.produce((one.topic, partition), [(one.key, one.value)])
        if not code:
            one.written = (offset, code)
        return offset, code

    def _report(self, one: _Queued, error: KafkaError | None, offset: int) -> None:
        if one.report is not None:
            report = one.report
            message = Message((one.topic, max(0, one.partition)), offset, None, None)
            self._reports.append(lambda: report(error, message))
        self._heard.wake()


@dataclass(slots=True)
class _Queued:
    """A record that waits for its acknowledgement; `written` is where the broker has it."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    until: float
    missing_until: float
    report: Callable[[KafkaError | None, Message], None] | None
    written: tuple[int, int] | None = None


__all__ = ["DEFAULTS", "NOT_EMPTY", "SimulatedAdmin", "SimulatedConsumer", "SimulatedSender", "cluster_of"]

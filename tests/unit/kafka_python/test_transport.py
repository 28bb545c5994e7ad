"""Answers come out whole however the network cuts them, and are what the library would have read."""

from __future__ import annotations

import socket
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka import errors as kafka_errors
from kafka.net.transport import KafkaTCPTransport
from kafka.protocol.consumer.fetch import FetchRequest, FetchResponse

from mirrorless.kafka_python.receive_buffers import ReceiveBuffers
from mirrorless.kafka_python.transport import Chunks, Plain, Protocol, read_answers, write_pieces

if TYPE_CHECKING:
    from collections.abc import Sequence

VERSION = 12
FRAMES_BYTES = 4 << 20


def parser_that_asked(answers: int) -> Any:  # noqa: ANN401 -- the library is untyped
    """One that expects so many answers."""
    parser: Any = Protocol()  # type: ignore[no-untyped-call]
    send: Any = parser.send_request
    for _ in range(answers):
        request = FetchRequest(topics=[], forgotten_topics_data=[])
        request.API_VERSION = VERSION
        send(request)
    return parser


class Connection:
    """What `read_answers` needs of a transport and of its connection."""

    def __init__(self, sock: socket.socket, answers: int) -> None:
        sock.setblocking(False)
        self._sock = sock
        self.parser = parser_that_asked(answers)
        self.records: list[bytes] = []
        self.frames = ReceiveBuffers(FRAMES_BYTES)
        self.low_water = 1

    def get_protocol(self) -> Connection:
        return self

    def is_closing(self) -> bool:
        return False

    def data_received(self, data: bytes) -> None:
        for _, response in self.parser.receive_bytes(data):
            self.records.append(bytes(response.responses[0].partitions[0].records))


def answer(number: int, records: bytes) -> bytes:
    part = FetchResponse.FetchableTopicResponse.PartitionData(
        partition_index=0,
        error_code=0,
        high_watermark=0,
        last_stable_offset=0,
        log_start_offset=0,
        aborted_transactions=[],
        preferred_read_replica=-1,
        records=records,
    )
    topic = FetchResponse.FetchableTopicResponse(topic="t", partitions=[part])
    response: Any = FetchResponse(throttle_time_ms=0, error_code=0, session_id=0, responses=[topic])
    response.API_VERSION = VERSION
    response.with_header(correlation_id=number)
    return bytes(response.encode(header=True, framed=True))


def received(stream: bytes, cuts: Sequence[int], answers: int) -> list[bytes]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        connection = Connection(ours, answers)
        for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
            theirs.sendall(stream[begin:end])
            assert read_answers(connection) is None
        return connection.records


@settings(deadline=None)
@given(
    # Small frames are read in one, large ones in place.
    st.lists(st.binary(max_size=300).flatmap(lambda part: st.sampled_from([part, part * 40])), min_size=1, max_size=5),
    st.data(),
)
def test_frames_in_pieces(records: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(answer(number, content) for number, content in enumerate(records, 1))
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=8).map(sorted))
    assert received(stream, cuts, len(records)) == records


def test_every_cut() -> None:
    records = [b"", b"x" * 40, b"y"]
    stream = b"".join(answer(number, content) for number, content in enumerate(records, 1))
    for cut in range(len(stream)):
        assert received(stream, [cut], len(records)) == records


def test_every_cut_around_the_ends_of_large_frames() -> None:
    records = [b"x" * 5_000, b"y" * 6_000]
    stream = b"".join(answer(number, content) for number, content in enumerate(records, 1))
    first = len(answer(1, records[0]))
    for cut in (*range(60), *range(first - 60, first + 60), *range(len(stream) - 60, len(stream))):
        assert received(stream, [cut], len(records)) == records


def test_a_large_answer_is_waited_for_in_large_pieces_and_its_end_is_not() -> None:
    """What OpenSSL may have read ahead does not arrive again, so the last 32 KiB are waited for byte by byte."""
    stream = answer(1, b"x" * 500_000)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        connection = Connection(ours, 1)

        def low_water_after(begin: int, end: int) -> int:
            for at in range(begin, end, 50_000):
                theirs.sendall(stream[at : min(at + 50_000, end)])
                assert read_answers(connection) is None
            return ours.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT)

        assert low_water_after(0, 10_000) == 128 << 10
        assert low_water_after(10_000, len(stream) - 100_000) == 100_000 - (32 << 10)
        assert low_water_after(len(stream) - 100_000, len(stream) - 30_000) == 1
        assert low_water_after(len(stream) - 30_000, len(stream)) == 1
        assert connection.records == [b"x" * 500_000]


def test_large_answers_are_put_into_the_same_frame_one_after_the_other() -> None:
    records = [b"x" * 1_500_000, b"y" * 1_200_000, b"z" * 1_600_000]
    stream = b"".join(answer(number, content) for number, content in enumerate(records, 1))
    ours, theirs = socket.socketpair()
    with ours, theirs:
        connection = Connection(ours, len(records))
        for begin in range(0, len(stream), 50_000):
            theirs.sendall(stream[begin : begin + 50_000])
            assert read_answers(connection) is None
        assert connection.records == records
        assert len(answer(3, records[2])) - 4 == connection.frames.kept_bytes, "one frame, as long as its last answer"


def test_the_end_of_the_stream_is_an_error() -> None:
    ours, theirs = socket.socketpair()
    with ours:
        connection = Connection(ours, 1)
        with theirs:
            theirs.sendall(answer(1, b"records")[:-1])
        assert read_answers(connection) is None, "what came before it is taken first"
        assert isinstance(read_answers(connection), kafka_errors.KafkaConnectionError)


@pytest.mark.parametrize("size", [b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff"], ids=["negative", "far too large"])
def test_a_size_that_cannot_be(size: bytes) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        connection = Connection(ours, 1)
        theirs.sendall(size)
        assert isinstance(read_answers(connection), kafka_errors.InvalidReceiveError)


def test_an_answer_nobody_asked_for() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        connection = Connection(ours, 0)
        theirs.sendall(answer(1, b"records"))
        assert isinstance(read_answers(connection), kafka_errors.CorrelationIdError)


@settings(deadline=None)
@given(sizes=st.lists(st.integers(1, 40_000), min_size=1, max_size=200))
def test_pieces_arrive_whole_and_in_order_however_little_the_socket_takes(sizes: list[int]) -> None:
    pieces = deque[Any](bytes([number % 251]) * size for number, size in enumerate(sizes))
    expected = b"".join(pieces)
    here, there = socket.socketpair()
    with here, there:
        here.setblocking(False)
        here.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)
        arrived = bytearray()
        while pieces:
            sent, error = write_pieces(here, pieces)
            assert error is None
            before = len(arrived)
            while len(arrived) < before + sent:
                arrived += there.recv(1 << 20)
        assert arrived == expected


def test_a_connection_that_is_gone_is_told() -> None:
    here, there = socket.socketpair()
    there.close()
    with here:
        sent, error = write_pieces(here, deque([b"request"]))
    assert sent == 0
    assert isinstance(error, kafka_errors.KafkaConnectionError)
    assert isinstance(write_pieces(None, deque([b"request"]))[1], kafka_errors.KafkaConnectionError)


class Owner:
    """What a transport tells its connection."""

    _sensors = None

    def __init__(self) -> None:
        self.lost: list[BaseException | None] = []

    def connection_lost(self, error: BaseException | None) -> None:
        self.lost.append(error)


def transport_over(loop: Any, sock: socket.socket) -> tuple[Any, Owner]:  # noqa: ANN401 -- the library's are untyped
    sock.setblocking(False)
    transport: Any = KafkaTCPTransport(loop, sock)
    transport.__class__ = Plain
    owner = Owner()
    transport.set_protocol(owner)
    return transport, owner


class Reader(Owner):
    """A connection that asked for so many answers."""

    def __init__(self, answers: int) -> None:
        super().__init__()
        self.parser = parser_that_asked(answers)
        self.records: list[bytes] = []

    def data_received(self, data: bytes) -> None:
        for _, response in self.parser.receive_bytes(data):
            self.records.append(bytes(response.responses[0].partitions[0].records))


def test_answers_are_read_until_the_connection_ends_which_is_then_forgotten(loop: Any) -> None:  # noqa: ANN401
    here, there = socket.socketpair()
    with there:
        transport, _ = transport_over(loop, here)
        reader = Reader(100)
        transport.set_protocol(reader)
        known = here.fileno()
        transport.resume_reading()

        async def answers() -> None:
            for number in range(1, 100):
                there.sendall(answer(number, b"%d" % number))
                if number % 3 == 0:
                    while len(reader.records) < number:
                        await loop.sleep(0.001)

        loop.run(answers)
        assert reader.records == [b"%d" % number for number in range(1, 100)]
        transport.abort(kafka_errors.KafkaConnectionError("enough"))
        assert known not in loop._selector.get_map()
        loop.poll(10)
        assert len(reader.lost) == 1
        assert not loop._ready


def test_a_connection_that_the_broker_ends_is_forgotten(loop: Any) -> None:  # noqa: ANN401
    here, there = socket.socketpair()
    transport, _ = transport_over(loop, here)
    reader = Reader(1)
    transport.set_protocol(reader)
    known = here.fileno()
    transport.resume_reading()

    async def ended() -> None:
        await loop.sleep(0.01)
        there.close()
        while not reader.lost:
            await loop.sleep(0.001)

    loop.run(ended)
    assert isinstance(reader.lost[0], kafka_errors.KafkaConnectionError)
    assert known not in loop._selector.get_map()


def test_a_small_request_is_sent_at_once(loop: Any) -> None:  # noqa: ANN401
    here, there = socket.socketpair()
    with here, there:
        transport, _ = transport_over(loop, here)
        transport.write(Chunks([b"re", b"quest"]))
        transport.write(b"another")
        assert there.recv(100) == b"requestanother"
        assert not loop._ready, "nothing waits to be sent"


def test_requests_that_the_socket_does_not_take_at_once_arrive_whole_and_in_order(loop: Any) -> None:  # noqa: ANN401
    requests = [Chunks([bytes([number]) * 300_000, b"end %d" % number]) for number in range(12)]
    expected = b"".join(piece for request in requests for piece in request)
    here, there = socket.socketpair()
    with here, there:
        transport, owner = transport_over(loop, here)
        arrived = bytearray()

        async def send() -> None:
            for number, request in enumerate(requests):
                transport.write(request)
                if number % 3 == 2:
                    await loop.sleep(0.01)
                    arrived.extend(there.recv(500_000))
            there.setblocking(False)
            while len(arrived) < len(expected):
                await loop.sleep(0.001)
                with suppress(BlockingIOError):
                    arrived.extend(there.recv(1 << 20))

        loop.run(send)
        assert arrived == expected
        assert not owner.lost


def test_a_connection_that_is_gone_ends_where_it_is_written_to(loop: Any) -> None:  # noqa: ANN401
    here, there = socket.socketpair()
    there.close()
    with here:
        transport, owner = transport_over(loop, here)

        async def send() -> None:
            transport.write(b"request")
            while not owner.lost:
                await loop.sleep(0.001)

        loop.run(send)
        assert isinstance(owner.lost[0], kafka_errors.KafkaConnectionError)


def test_a_connection_closed_in_order_ends_although_its_socket_takes_nothing_more(loop: Any) -> None:  # noqa: ANN401
    here, there = socket.socketpair()
    with here, there:
        transport, owner = transport_over(loop, here)
        transport.write(bytes(50 << 20))
        transport.close()
        assert not owner.lost, "what is left is still to be sent"
        transport.abort(kafka_errors.RequestTimedOutError())
        transport.abort(kafka_errors.RequestTimedOutError())
        assert [type(one) for one in owner.lost] == [kafka_errors.RequestTimedOutError]

"""The fence around kafka-python: no module outside of this package imports it.

kafka-python is the only Python client that hands out whole record batches. It has no documented interface for that, so
this package uses names of its network layer that may change in any release, and replaces some of them
(docs/decisions/0006). All are listed here. They and the version are checked when this package is imported, and
`tests/unit/kafka_python` checks what they do.

To move to another release: change `LEAST` and `BELOW` here and the requirement in pyproject.toml, run
`pytest tests/unit/kafka_python tests/unit/protocol`, compare each listed name with the library's new code, and run
`make bench-quick` before and after.

    errors, messages, structs   the library's own, as they are
    admin, security             its admin client, token providers and TLS contexts
    event_loop                  its event loop, with cheaper timers
    transport                   reading responses and writing requests without copies
    receive_buffers             the buffers that large responses are read into
    dead_connections            ends connections that nothing is acknowledged on
    connection_manager          up to two connections for each broker
    raw_messages                requests that are encoded outside of the library
    group_offsets               OffsetCommit and OffsetFetch, so encoded
    sockets                     closes sockets that did not become a connection
    compatibility               the check
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mirrorless.kafka_python.compatibility import installed_version, require_names, require_version

if TYPE_CHECKING:
    from collections.abc import Mapping

LEAST: Final = (3, 0, 12)
BELOW: Final = (3, 1)
_RANGE: Final = "pip install 'kafka-python>=3.0.12,<3.1'"
_TESTED: Final = "pip install 'kafka-python==3.0.12'"

REPLACED: Final[Mapping[str, str]] = {
    "kafka.net.selector:log_trace(msg)": "does nothing: a trace of every step of the loop, 3 % of a dense copy's CPU",
    "kafka.net.connection:KafkaProtocol": "is `transport.Protocol`: a connection makes its own parser",
    "kafka.net.inet:KafkaNetSocket.sock_connect(net, sock, sockaddr, timeout_at)": "closes the socket on failure",
    "kafka.net.transport:KafkaSSLTransport.handshake()": "closes the socket on failure",
}
"""Names that are assigned in the library, for every user of it in this process."""

LOOKED_UP_BY: Final[Mapping[str, str]] = {
    "kafka.net.selector:log_trace": "kafka.net.selector:NetworkSelector._poll_once",
    "kafka.net.connection:KafkaProtocol": "kafka.net.connection:KafkaConnection.connection_made",
    "kafka.net.inet:KafkaNetSocket.sock_connect": "kafka.net.inet:KafkaNetSocket.connect",
    "kafka.net.transport:KafkaSSLTransport.handshake": "kafka.net.manager:KafkaConnectionManager._build_transport",
}
"""Where the library looks up a replaced name; if it did not, the replacement would do nothing."""

OVERRIDDEN: Final[Mapping[str, str]] = {
    "kafka.net.selector:NetworkSelector._add_ready_task(task)": "sets the state first: another thread may run the task",
    "kafka.net.selector:NetworkSelector._unschedule(task)": "leaves a cancelled timer in the heap",
    "kafka.net.selector:NetworkSelector._schedule_tasks()": "skips cancelled timers",
    "kafka.net.selector:NetworkSelector.register_event(fileobj, event, task)": "does not look up a new socket first",
    "kafka.net.selector:NetworkSelector.wakeup()": "does not wake the thread that calls it",
    "kafka.net.transport:KafkaTCPTransport._sock_recv()": "reads into the parser's buffer",
    "kafka.net.transport:KafkaTCPTransport._sock_send()": "writes the pieces of requests",
    "kafka.net.transport:KafkaTCPTransport.abort(error)": "also ends a connection that is being closed",
    "kafka.net.transport:KafkaTCPTransport._close(error)": "drops what was not acknowledged, after an error",
    "kafka.net.transport:KafkaTCPTransport.write(data)": "sends at once what the socket takes",
    "kafka.net.transport:KafkaSSLTransport._sock_recv()": "reads into the parser's buffer",
    "kafka.net.transport:KafkaSSLTransport.abort(error)": "also ends a connection that is being closed",
    "kafka.net.transport:KafkaSSLTransport._close(error)": "drops what was not acknowledged, after an error",
    "kafka.net.transport:KafkaSSLTransport.write(data)": "takes requests in pieces",
    "kafka.net.manager:KafkaConnectionManager.get_connection(node_id, timeout_ms)": "bootstrap servers share the time",
    "kafka.net.manager:KafkaConnectionManager.least_loaded_node()": "avoids a broker that hangs",
    "kafka.net.manager:KafkaConnectionManager._build_transport(node, timeout_at)": "makes our transports",
    "kafka.cluster:ClusterMetadata.bootstrap_brokers()": "takes the bootstrap servers in turn",
    "kafka.cluster:ClusterMetadata.broker_metadata(broker_id)": "knows extra connections",
    "kafka.protocol.parser:KafkaProtocol.send_bytes()": "takes requests in pieces",
    "kafka.protocol.parser:KafkaProtocol.receive_bytes(data)": "puts a response that is not all there into our buffer",
    "kafka.protocol.frame:KafkaBytes.read(nbytes)": "returns a view",
    "kafka.protocol.api_message:ApiMessage.with_header(correlation_id, client_id)": "keeps our header",
    "kafka.protocol.api_message:ApiMessage.encode(version, header, framed)": "encodes Produce, Fetch and offsets",
}
"""Methods that subclasses override."""

USED: Final[Mapping[str, str]] = {
    "kafka.net.selector:NetworkSelector()._poll_owner": "the loop's thread while it polls",
    "kafka.net.selector:NetworkSelector()._ready": "tasks that can run",
    "kafka.net.selector:NetworkSelector()._scheduled": "the heap of timers",
    "kafka.net.selector:NetworkSelector.call_later(delay, task)": "runs something later",
    "kafka.net.selector:NetworkSelector.unregister_event(fileobj, event)": "no longer waits for events of a socket",
    "kafka.net.selector:NetworkSelector()._selector": "the sockets that are registered",
    "kafka.net.selector:Task.__init__(coro)": "what is registered for a socket",
    "kafka.net.selector:TaskState.READY": "state of a task",
    "kafka.net.selector:TaskState.SCHEDULED": "state of a timer",
    "kafka.net.selector:TaskState.UNSCHEDULED": "state of a cancelled timer",
    "kafka.net.transport:KafkaTCPTransport()._closed": "whether it is closed, or being closed",
    "kafka.net.transport:KafkaTCPTransport()._net": "the event loop",
    "kafka.net.transport:KafkaTCPTransport()._protocol": "the connection",
    "kafka.net.transport:KafkaTCPTransport()._sock": "the socket",
    "kafka.net.transport:KafkaTCPTransport()._write": "whether it may be written to",
    "kafka.net.transport:KafkaTCPTransport()._write_buffer": "pieces that wait to be sent",
    "kafka.net.transport:KafkaTCPTransport()._writing": "whether a task sends them",
    "kafka.net.transport:KafkaTCPTransport.writelines(list_of_data)": "sends later what the socket does not take",
    "kafka.net.transport:KafkaTCPTransport.host_port()": "the address, for an error",
    "kafka.net.transport:KafkaSSLTransport.DEFAULT_CONFIG": "names of the settings of TLS",
    "kafka.net.transport:KafkaSSLTransport._build_ssl_context(config)": "the TLS context of doctor's handshake",
    "kafka.net.connection:KafkaConnection()._throttle_time": "until when a broker throttles us",
    "kafka.net.connection:KafkaConnection().in_flight_requests": "requests, each with its future and when it was sent",
    "kafka.net.connection:KafkaConnection().paused": "the reasons why it does not send",
    "kafka.net.connection:KafkaConnection().transport": "the socket's owner, None before it is open",
    "kafka.net.connection:KafkaConnection().connected": "whether it is open",
    "kafka.net.connection:KafkaConnection.send_request(request)": "sends a request over this connection only",
    "kafka.net.connection:KafkaConnection.close(error)": "ends a connection",
    "kafka.net.inet:KafkaNetSocket.dns_lookup(host, port)": "the addresses of a broker",
    "kafka.net.inet:KafkaNetSocket.socket(family, sock_type, proto)": "opens a socket",
    "kafka.net.manager:KafkaConnectionManager()._bootstrap_future": "None: the bootstrap servers are to be asked",
    "kafka.net.manager:KafkaConnectionManager()._conns": "connections by node",
    "kafka.net.manager:KafkaConnectionManager()._net": "the event loop",
    "kafka.net.manager:KafkaConnectionManager.bootstrap_async(timeout_ms, refresh)": "asks the bootstrap servers",
    "kafka.net.manager:KafkaConnectionManager.wait_for(future, timeout_ms)": "waits for a response",
    "kafka.cluster:ClusterMetadata()._bootstrap_brokers": "the bootstrap servers",
    "kafka.cluster:ClusterMetadata()._partitions": "the replicas of each partition",
    "kafka.cluster:ClusterMetadata()._topics": "topics whose metadata is asked for",
    "kafka.protocol.parser:KafkaProtocol()._header": "the length of a response, as far as it has come",
    "kafka.protocol.parser:KafkaProtocol()._rbuffer": "the response that is being read",
    "kafka.protocol.parser:KafkaProtocol()._receiving": "whether one is being read",
    "kafka.protocol.parser:KafkaProtocol().bytes_to_send": "encoded requests",
    "kafka.protocol.parser:KafkaProtocol._validate_frame_size(nbytes)": "refuses an impossible length",
    "kafka.protocol.api_message:ApiMessage()._header": "a request's header",
    "kafka.admin:KafkaAdminClient()._manager": "sends requests that the admin client has no method for",
    "kafka.admin:KafkaAdminClient._find_coordinator_ids(keys)": "finds the coordinators of many groups at once",
    "kafka.admin:KafkaAdminClient._refresh_controller_id()": "asks for the controller",
    "kafka.admin:KafkaAdminClient._send_request_to_controller(request, get_errors_fn, raise_errors)": "the same",
    "kafka.net.sasl.oauth:AbstractTokenProvider.register": "makes a class a token provider",
}
"""Names that are called, read or written."""

_INSTALLED: Final = installed_version(advice=_RANGE)
require_version(_INSTALLED, least=LEAST, below=BELOW, advice=_RANGE)
require_names(_INSTALLED, (*REPLACED, *OVERRIDDEN, *USED), looked_up_by=LOOKED_UP_BY, advice=_TESTED)

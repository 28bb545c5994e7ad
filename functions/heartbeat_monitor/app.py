"""heartbeat_monitor: measures the latency of heartbeats, and the age of the last one."""

from mirrorless.functions.heartbeat_monitor import monitor
from mirrorless.functions.invocation import FunctionHandler

handler = FunctionHandler("heartbeat_monitor", monitor)

"""heartbeat_monitor: measures how long heartbeats take, and how old the last one is."""

from mirrorless.functions.heartbeat_monitor import monitor
from mirrorless.functions.invocation import FunctionHandler

handler = FunctionHandler("heartbeat_monitor", monitor)

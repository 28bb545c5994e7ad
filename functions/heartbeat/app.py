"""heartbeat: emits heartbeats to the target."""

from mirrorless.functions.heartbeat import beat
from mirrorless.functions.invocation import FunctionHandler

handler = FunctionHandler("heartbeat", beat, reserve_s=3.0)

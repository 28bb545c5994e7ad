"""heartbeat: writes signs of life to the target."""

from mirrorless.functions.heartbeat import beat
from mirrorless.functions.invocation import Function

handler = Function("heartbeat", beat, reserve_s=3.0)

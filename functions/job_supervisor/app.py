"""job_supervisor: keeps one run of the copy job active, unless the flow is paused or not enabled."""

from mirrorless.functions.invocation import FunctionHandler
from mirrorless.functions.job_supervisor import stand_down, supervise

handler = FunctionHandler("job_supervisor", supervise, not_enabled=stand_down)

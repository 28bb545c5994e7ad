"""job_supervisor: keeps one run of the copy job going, unless the flow is paused."""

from mirrorless.functions.invocation import Function
from mirrorless.functions.job_supervisor import supervise

handler = Function("job_supervisor", supervise)

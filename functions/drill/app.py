"""drill: rehearses a failover, stores the report and emits its figures; stops nothing and writes to no cluster."""

from mirrorless.functions.drill import rehearse
from mirrorless.functions.invocation import FunctionHandler

handler = FunctionHandler("drill", rehearse)

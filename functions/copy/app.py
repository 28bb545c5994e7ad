"""copy: copies the flow's partitions until the next invocation is ready to."""

from mirrorless.functions.copy import copy_partitions
from mirrorless.functions.invocation import FunctionHandler

handler = FunctionHandler("copy", copy_partitions)

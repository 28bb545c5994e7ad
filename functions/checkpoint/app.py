"""checkpoint: writes translated group offsets to the target."""

from mirrorless.functions.checkpoint import checkpoint
from mirrorless.functions.invocation import FunctionHandler

handler = FunctionHandler("checkpoint", checkpoint)

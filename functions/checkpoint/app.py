"""checkpoint: writes translated group offsets to the target."""

from mirrorless.functions.checkpoint import checkpoint
from mirrorless.functions.invocation import Function

handler = Function("checkpoint", checkpoint)

"""config_sync: sets the configs of source topics on their remote topics."""

from mirrorless.functions.invocation import FunctionHandler
from mirrorless.functions.metadata import sync_configs

handler = FunctionHandler(
    "config_sync", sync_configs, reserve_s=60.0
)  # a request of hundreds of topics may take that long

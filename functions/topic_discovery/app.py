"""topic_discovery: creates missing remote topics and partitions."""

from mirrorless.functions.invocation import FunctionHandler
from mirrorless.functions.metadata import discover_topics

handler = FunctionHandler(
    "topic_discovery", discover_topics, reserve_s=60.0
)  # a request of hundreds of topics may take that long

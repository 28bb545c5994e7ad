"""topic_discovery: creates missing remote topics and partitions."""

from mirrorless.functions.invocation import Function
from mirrorless.functions.metadata import discover_topics

handler = Function(
    "topic_discovery", discover_topics, reserve_s=60.0
)  # a request of hundreds of topics may take that long

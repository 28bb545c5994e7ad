"""What the tests of identical offsets listen to."""

from tests.kafka.copy.conftest import troubles

__all__ = ["troubles"]

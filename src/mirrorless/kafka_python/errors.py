"""kafka-python's errors, as they are."""

from __future__ import annotations

from kafka.errors import *  # noqa: F403

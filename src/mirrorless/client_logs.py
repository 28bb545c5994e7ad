"""The logs of the two client libraries, kafka-python and librdkafka: kept off stderr unless they are asked for.

Both log every attempt to connect that fails, several times a second while a cluster is down. Failed connections are
reported once by what needed them: in a copy's reports, in findings and in errors. So `set_up` keeps these logs from the
handlers of the root logger. A handler that is added to `KAFKA_PYTHON` or `LIBRDKAFKA` gets them all the same.

`show` writes them to stderr, in this process and in those that it starts: `--verbose` calls it. Where there is no
command line, as in a function, the environment variable `MIRRORLESS_VERBOSE` does the same, whatever its value.
"""

from __future__ import annotations

import logging
import os
import sys
from typing import Final, TextIO

KAFKA_PYTHON: Final = logging.getLogger("kafka")
LIBRDKAFKA: Final = logging.getLogger("mirrorless.librdkafka")
"""For `logger` of every confluent-kafka client; without one librdkafka writes to stderr itself."""
LIBRDKAFKA.addHandler(logging.NullHandler())
LIBRDKAFKA.propagate = False
VERBOSE: Final = "MIRRORLESS_VERBOSE"
_LOGGERS: Final = (KAFKA_PYTHON, LIBRDKAFKA)


class _Stderr(logging.StreamHandler[TextIO]):
    """Writes to whatever stderr is at the moment."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        self.stream = sys.stderr
        super().emit(record)


_STDERR: Final = _Stderr()
_STDERR.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))


def set_up() -> None:
    """Keep the libraries' logs from the root logger's handlers, or show them if that was asked for.

    Whatever opens connections for long calls it first; it may be called again.
    """
    for logger in _LOGGERS:
        logger.propagate = False
        if shown() and _STDERR not in logger.handlers:
            logger.addHandler(_STDERR)
            logger.setLevel(logging.INFO)


def show() -> None:
    """Write the libraries' logs to stderr, here and in processes that are started from now on."""
    os.environ[VERBOSE] = "1"
    set_up()


def shown() -> bool:
    """Whether they are, or will be once `set_up` is called."""
    return VERBOSE in os.environ

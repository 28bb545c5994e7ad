"""AWS clients; boto3 is imported only where a configuration needs it."""

from __future__ import annotations

import importlib
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


_making = threading.Lock()
"""boto3's default session must not make clients in several threads at once."""


@contextmanager
def client(service: str, *, region: str | None) -> Iterator[Any]:
    """Yield boto3's client of a service; any error of AWS becomes a ValueError of one line, without values."""
    try:
        boto3 = importlib.import_module("boto3")
        exceptions = importlib.import_module("botocore.exceptions")
    except ImportError:
        raise ValueError(f"{service} needs the package boto3: pip install mirrorless") from None
    try:
        with _making:
            made = boto3.client(service, region_name=region)
        yield made
    except exceptions.ClientError as error:
        answer = error.response.get("Error", {})
        raise ValueError(
            f"{service} answered {answer.get('Code', 'an error')}: {_line(answer.get('Message', ''))}"
        ) from None
    except (exceptions.NoCredentialsError, exceptions.PartialCredentialsError, exceptions.NoRegionError) as error:
        raise ValueError(f"{service} was not asked: {_line(error)}") from None
    except exceptions.BotoCoreError as error:
        raise ValueError(f"{service} is not reachable: {_line(error)}") from None


def _line(text: object) -> str:
    return " ".join(str(text).split())

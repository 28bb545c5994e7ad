"""An AWS on loopback: moto's server."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.request import Request, urlopen

from moto.server import ThreadedMotoServer

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def aws_server() -> Iterator[dict[str, str]]:
    """Yield the environment of a client of an AWS with nothing in it: what moto remembers is the process's."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    try:
        with urlopen(Request(f"{url}/moto-api/reset", method="POST"), timeout=30):  # noqa: S310 -- loopback
            pass
        yield {
            "AWS_ENDPOINT_URL": url,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "us-east-1",
        }
    finally:
        server.stop()

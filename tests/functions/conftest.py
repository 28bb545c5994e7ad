"""AWS is moto's server, one for all tests of functions."""

from __future__ import annotations

import uuid
from contextlib import ExitStack
from typing import TYPE_CHECKING, Protocol

import boto3
import pytest
from moto.server import ThreadedMotoServer

from tests.support.runtime_api import Function

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

    from tests.support.world import World

REGION = "eu-west-1"


class Aws:
    """moto's server and how it is reached."""

    def __init__(self, endpoint: str) -> None:
        self.environment = {
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_DEFAULT_REGION": REGION,
            "AWS_REGION": REGION,
        }
        self._endpoint = endpoint

    def client(self, service: str) -> Any:  # noqa: ANN401 -- boto3's
        """boto3's client of a service."""
        return boto3.client(
            service,
            endpoint_url=self._endpoint,
            region_name=REGION,
            aws_access_key_id="testing",
            aws_secret_access_key="testing",  # noqa: S106 -- moto takes any
        )

    def queue(self) -> str:
        """A new queue's URL."""
        return str(self.client("sqs").create_queue(QueueName=uuid.uuid4().hex)["QueueUrl"])

    def bucket(self) -> str:
        """A new bucket's name: moto's accounts are shared by all tests of a process."""
        name = uuid.uuid4().hex
        self.client("s3").create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": REGION})
        return name


class Start(Protocol):
    """Starts a function for the world's flow."""

    def __call__(self, name: str, **environment: str) -> Function: ...


@pytest.fixture(scope="session")
def aws() -> Iterator[Aws]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield Aws(f"http://{host}:{port}")
    server.stop()


@pytest.fixture
def start(world: World, aws: Aws, tmp_path: Path) -> Iterator[Start]:
    with ExitStack() as stack:

        def begin(name: str, **environment: str) -> Function:
            known = {"MIRRORLESS_CONFIG": str(world.file), "MIRRORLESS_FLOW": world.flow}
            return stack.enter_context(Function(name, tmp_path, known | aws.environment | environment))

        yield begin

"""Puts the jars with which Spark reads Kafka, the same as on one's own machine, beside what is published for Glue.

They come from the cache of `mirrorless.local.jars` where that has them, else from Maven Central or the repository that
MIRRORLESS_MAVEN names; either way only if they have the checksums below. It needs neither Java nor any package.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mirrorless.local.jars import MSK_IAM, SPARK_KAFKA, cache_folder

if TYPE_CHECKING:
    from collections.abc import Mapping

SETS: Final = (SPARK_KAFKA, MSK_IAM)
SHA256: Final = {
    "aws-msk-iam-auth-2.3.5-all.jar": "bcd6020ce1ca2c3f1a65e087057dc8c0757185ba1f169b38e0eda54b617e4225",
    "commons-pool2-2.12.1.jar": "5273c8bc8c0dca2211175c0d27efbd7228efae99689aac001a8e1ef8e872e9ef",
    "kafka-clients-3.9.1.jar": "7568b998572d256f0b7bc0afdc1b7a2588b8b08415c62ce314c864a6851ae9d9",
    "spark-sql-kafka-0-10_2.13-4.1.1.jar": "9c1ce986f548e6b1dcb0e2dfe2f253a0bc58f2232a32a0c9c6c674dd25a8570c",
    "spark-token-provider-kafka-0-10_2.13-4.0.0.jar": (
        "f2be3b76f9e6cbe63379d4e4e0dc14f59dbf056ae2ad16ff15ac108004c86767"
    ),
}
_CENTRAL: Final = "https://repo1.maven.org/maven2"
_TIMEOUT_S: Final = 60


def gather(folder: Path, environment: Mapping[str, str]) -> None:
    """Put all jars into `folder`; raises SystemExit, naming the jar, where one cannot be had or is another one."""
    for jars in SETS:
        cached = cache_folder(environment) / jars.name
        for module, name in jars.file_names().items():
            if _digest(cached / name) == SHA256[name]:
                shutil.copyfile(cached / name, folder / name)
                continue
            organisation, artifact, revision = module.split(":")
            repository = environment.get("MIRRORLESS_MAVEN", _CENTRAL).rstrip("/")
            address = f"{repository}/{organisation.replace('.', '/')}/{artifact}/{revision}/{name}"
            try:
                with urllib.request.urlopen(address, timeout=_TIMEOUT_S) as response:  # noqa: S310 -- the builder's own
                    (folder / name).write_bytes(response.read())
            except OSError as error:
                sys.exit(f"{address} cannot be downloaded ({error}): name another repository in MIRRORLESS_MAVEN")
            if _digest(folder / name) != SHA256[name]:
                (folder / name).unlink()
                sys.exit(f"{address} is not the jar that it should be: its SHA-256 is not the one in infra/jars.py")


def _digest(file: Path) -> str:
    if not file.is_file():
        return ""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


if __name__ == "__main__":
    gather(Path(sys.argv[1]), os.environ)

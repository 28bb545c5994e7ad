"""A configuration lies on disk, in S3 or in the SSM parameter store; where it cannot be read, one line says why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mirrorless.errors import ConfigurationError
from mirrorless.settings.locations import read

if TYPE_CHECKING:
    from pathlib import Path


def test_a_file_is_utf8(tmp_path: Path) -> None:
    path = tmp_path / "mm2.properties"
    path.write_bytes("\ufeffA.client.id = \u00fc\r\n".encode())

    assert read(str(path)) == "A.client.id = \u00fc\r\n"


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"^.*none\.properties: cannot be read: No such file or directory$"):
        read(str(tmp_path / "none.properties"))


def test_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"cannot be read: Is a directory$"):
        read(str(tmp_path))


def test_a_file_in_another_encoding(tmp_path: Path) -> None:
    path = tmp_path / "mm2.properties"
    path.write_bytes(b"clusters = \xfc")

    with pytest.raises(ConfigurationError, match=r"mm2\.properties: is not UTF-8 at byte 11$"):
        read(str(path))

"""A file that `mirrorless kafka up` wrote is overwritten only if nobody has edited it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mirrorless.errors import ConfigurationError
from mirrorless.local.ready_settings import refuse_foreign, write_ready_settings

if TYPE_CHECKING:
    from pathlib import Path


def test_an_edited_file_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "mm2.properties"
    write_ready_settings(file, {"a": "127.0.0.1:1", "b": "127.0.0.1:2"}, brokers=1)
    refuse_foreign(file, names=["a", "b"])
    file.write_text(file.read_text() + "b->a.enabled = true\n")
    with pytest.raises(ConfigurationError, match="was edited since `mirrorless kafka up` wrote it"):
        refuse_foreign(file, names=["a", "b"])

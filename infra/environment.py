"""Packs a folder of packages as a virtual environment for AWS Glue's `--python-virtual-env`.

It is what `venv-pack` makes of an environment that was built on Amazon Linux 2023 (AWS Glue developer guide, "Using
Python virtual environments"): links to the system's interpreter, and packages. Made by hand because no such system is
needed for it. The same packages make the same bytes, so that nothing is published anew without need.
"""

from __future__ import annotations

import gzip
import io
import sys
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

PYTHON: Final = "3.13"
_INTERPRETER: Final = f"/usr/bin/python{PYTHON}"
# Tests and C headers of numpy, pandas and pyarrow: a third of the files, and nobody imports them.
_LEFT_OUT: Final = frozenset({"tests", "include", "__pycache__"})
_FROM_THE_BEGINNING: Final = ("numpy", "pandas", "pyarrow")
_ACTIVATE: Final = """\
# Sourced by sh and bash: `. bin/activate`.
VIRTUAL_ENV="$(cd "$(dirname "${BASH_SOURCE:-$0}")/.." && pwd)"
PATH="$VIRTUAL_ENV/bin:$PATH"
export VIRTUAL_ENV PATH
unset PYTHONHOME
"""
"""`venv-pack` packs one; it is sourced after its archive is unpacked."""
# The fastest level: 5 s instead of 20 s, for an archive that is a tenth larger.
_COMPRESSION: Final = 1


def pack(packages: Path, archive: Path) -> None:
    """Write `archive` (tar.gz) with everything in `packages` but its scripts."""
    with (
        archive.open("wb") as file,
        gzip.GzipFile(fileobj=file, mode="wb", compresslevel=_COMPRESSION, mtime=0, filename="") as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        settings = f"home = /usr/bin\ninclude-system-site-packages = false\nversion = {PYTHON}\n".encode()
        tar.addfile(_entry("pyvenv.cfg", size=len(settings)), io.BytesIO(settings))
        tar.addfile(_entry("bin/activate", size=len(_ACTIVATE)), io.BytesIO(_ACTIVATE.encode()))
        for name in (f"python{PYTHON}", "python3", "python"):
            tar.addfile(_link(f"bin/{name}", _INTERPRETER))
        tar.addfile(_link("lib64", "lib"))
        for path in _files(packages):
            entry = _entry(
                f"lib/python{PYTHON}/site-packages/{path.relative_to(packages).as_posix()}", size=path.stat().st_size
            )
            with path.open("rb") as content:
                tar.addfile(entry, content)


def _files(packages: Path) -> Iterator[Path]:
    for path in sorted(packages.rglob("*")):
        top, *below = path.relative_to(packages).parts
        unwanted = top == "bin" or (top in _FROM_THE_BEGINNING and not _LEFT_OUT.isdisjoint(below))
        if path.is_file() and not unwanted:
            yield path


def _entry(name: str, *, size: int = 0) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size = size
    entry.mode = 0o644
    return entry


def _link(name: str, to: str) -> tarfile.TarInfo:
    entry = _entry(name)
    entry.type = tarfile.SYMTYPE
    entry.linkname = to
    return entry


if __name__ == "__main__":
    pack(Path(sys.argv[1]), Path(sys.argv[2]))

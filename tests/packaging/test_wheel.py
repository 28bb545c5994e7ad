"""The wheel has what `mirrorless run` is wired by, and stays small."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING, Final

from tests.support.template import ROOT

if TYPE_CHECKING:
    from pathlib import Path

LARGEST_BYTES: Final = 5 << 18
"""Nothing but code, templates and the page: a file that does not belong there is larger than what is left."""
_SCRIPT: Final = """
import sys
sys.path.insert(0, sys.argv[1])
from mirrorless.local.wiring import deployment, wiring
from mirrorless.settings import load
settings = load(sys.argv[2])
found = wiring(settings, settings.flows[0])
assert found.job.script.exists() and all((one.folder / "app.py").exists() for one in found.functions.values())
print(deployment())
"""


def test_an_installed_wheel_is_wired_by_its_own_templates(tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run(
        [*pip, str(ROOT), "--wheel-dir", str(tmp_path)],
        check=True,
        timeout=300,
    )
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.stat().st_size < LARGEST_BYTES
    installed = tmp_path / "installed"
    with zipfile.ZipFile(wheel) as content:
        content.extractall(installed)
    settings = tmp_path / "mm2.properties"
    settings.write_text("clusters=a,b\na.bootstrap.servers=x:1\nb.bootstrap.servers=y:1\na->b.enabled=true\n")
    told = subprocess.run(
        [sys.executable, "-c", _SCRIPT, installed, settings],
        cwd=tmp_path,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert told.stdout.strip() == str(installed / "mirrorless" / "deployment")

"""The modes of a flow are asked for in few places, and the page has every combination of them."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Final

import pytest

import mirrorless
from mirrorless.errors import ConfigurationError
from mirrorless.modes import Modes
from mirrorless.settings import load
from mirrorless.settings.combinations import MODES
from mirrorless.settings.load import understand

PACKAGE = Path(mirrorless.__file__).parent
PAGE = PACKAGE.parents[1] / "docs" / "modes.md"
MOST_ASKING: Final = 15
SETTINGS = {"both_directions", "directions", "active_cluster", "offsets_identical_topics", "circle"}
FACTS = {
    "keeps_names",
    "keeps_any_offsets",
    "skips_copies",
    "shares_topics",
    "other_turn",
    "begins_stopped",
    "ends_with_a_move",
}
ASKED = SETTINGS | FACTS | {"offsets"}
BASE = """
clusters = A, B
A.bootstrap.servers = a:1
B.bootstrap.servers = b:1
A->B.enabled = true
B->A.enabled = true
B->A.sync.topic.configs.enabled = false
"""
KEPT = "replication.policy.class = IdentityReplicationPolicy\n"
ACTIVE = "mirrorless.active.cluster = A\n"


def asks(module: Path) -> bool:
    """Whether a module reads a setting of the modes, or a fact that follows from them, to decide by itself."""
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Attribute) and node.attr in ASKED:
            of_a_flow = getattr(node.value, "attr", getattr(node.value, "id", "")) in ("flow", "_flow")
            if node.attr != "offsets" or of_a_flow:
                return True
    return False


def test_few_modules_ask_for_a_mode() -> None:
    """The others ask `Modes` for what follows from it: which topics, which flows, whether to translate."""
    asking = [str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py") if asks(path)]
    assert len(asking) <= MOST_ASKING, sorted(asking)


def written(folder: Path, text: str) -> Path:
    path = folder / "mm2.properties"
    path.write_text(BASE + text)
    return path


def modes(folder: Path, text: str) -> list[tuple[bool, bool, bool]]:
    """Of both flows whether they take turns, share topics, keep the offsets of `orders`."""
    found = map(Modes, load(written(folder, text)).flows)
    return [(one.other_turn is not None, one.shares_topics, one.keeps_offsets("orders")) for one in found]


@pytest.mark.parametrize("offsets", ["dense", "identical"])
@pytest.mark.parametrize("directions", ["refuse", "turns", "skip"])
@pytest.mark.parametrize("names", ["default", "kept"])
def test_the_page_has_every_combination(tmp_path: Path, names: str, directions: str, offsets: str) -> None:
    text = KEPT if names == "kept" else ""
    text += f"mirrorless.both.directions = {directions}\nmirrorless.offsets = {offsets}\n"
    text += ACTIVE if directions == "turns" else ""
    row = re.search(rf"^\| {names} \| `{directions}` \| `{offsets}` \| (\w+)", PAGE.read_text(), re.MULTILINE)
    assert row is not None
    if row[1] == "refused":
        with pytest.raises(ConfigurationError):
            load(written(tmp_path, text))
    else:
        kept = names == "kept"
        flow = (kept and directions == "turns", kept and directions == "skip", offsets == "identical")
        assert modes(tmp_path, text) == [flow, flow]


def test_the_page_has_every_reason() -> None:
    page = " ".join(PAGE.read_text().split())
    assert [one.reason for one in MODES if one.reason.replace("{back} ", "") not in page.replace("`", "")] == []


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (f"{KEPT}{ACTIVE}mirrorless.both.directions = refuse\n", "has an effect with mirrorless.both.directions=turns"),
        (f"{KEPT}{ACTIVE}mirrorless.both.directions = skip\n", "both directions copy at the same time"),
        (f"{KEPT}mirrorless.both.directions = turns\n", "takes turns with it only if both have this setting"),
        (f"{KEPT}mirrorless.both.directions = turns\nmirrorless.active.cluster = C\n", "takes turns with it only"),
        (
            f"{KEPT}{ACTIVE}A->B.mirrorless.both.directions = turns\nB->A.mirrorless.both.directions = skip\n",
            "takes turns with it only",
        ),
        ("mirrorless.both.directions = other\n", "must be refuse or turns or skip"),
    ],
)
def test_what_cannot_be(tmp_path: Path, lines: str, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(reason)):
        load(written(tmp_path, lines))


@pytest.mark.parametrize(
    ("lines", "expected", "warning"),
    [
        (
            f"{KEPT}mirrorless.loops = skip\n",
            (False, True, False),
            "mirrorless.loops=skip: is the earlier name of mirrorless.both.directions; rename it",
        ),
        (
            f"{KEPT}{ACTIVE}",
            (True, False, False),
            "A->B, B->A: mirrorless.active.cluster alone is read as mirrorless.both.directions=turns; set that too",
        ),
        (f"{KEPT}{ACTIVE}mirrorless.loops = refuse\n", (True, False, False), "alone is read as"),
        (f"{KEPT}mirrorless.loops = Refuse\n", (False, False, False), "is the earlier name of"),
    ],
)
def test_earlier_settings_are_read_with_a_warning(
    tmp_path: Path, lines: str, expected: tuple[bool, bool, bool], warning: str
) -> None:
    assert modes(tmp_path, lines) == [expected, expected]
    assert any(warning in line for line in understand(written(tmp_path, lines)).warnings)


def test_a_flow_s_earlier_setting_replaces_that_of_the_file(tmp_path: Path) -> None:
    lines = f"{KEPT}mirrorless.loops = skip\nB->A.mirrorless.loops = refuse\n"
    assert modes(tmp_path, lines) == [(False, False, False), (False, False, False)]
    assert [one.skips_copies for one in map(Modes, load(written(tmp_path, lines)).flows)] == [True, False]


@pytest.mark.parametrize("lines", ["", ACTIVE, f"{KEPT}mirrorless.active.cluster = C\n"])
def test_an_active_cluster_without_an_effect_is_no_warning(tmp_path: Path, lines: str) -> None:
    assert not any("alone is read as" in line for line in understand(written(tmp_path, lines)).warnings)

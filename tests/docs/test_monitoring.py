"""The board and the alerts are as the metrics have them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from mirrorless.local.jars import cache_folder
from mirrorless.metrics import METRICS, Emitter
from mirrorless.publishing.prometheus import prometheus_name
from tests.docs import monitoring

NAMES = {prometheus_name(metric) + ("_total" if metric.counts else ""): metric for metric in METRICS}
BOARD = json.loads((monitoring.FOLDER / "grafana.json").read_text(encoding="utf-8"))
RULES = yaml.safe_load((monitoring.FOLDER / "alerts.yml").read_text(encoding="utf-8"))["groups"][0]["rules"]
PROMTOOL = shutil.which("promtool") or str(cache_folder(os.environ) / "promtool")


def test_both_files_are_up_to_date() -> None:
    assert (monitoring.FOLDER / "alerts.yml").read_text(encoding="utf-8") == monitoring.alerts()
    assert (monitoring.FOLDER / "grafana.json").read_text(encoding="utf-8") == monitoring.board()


def expressions() -> list[str]:
    queries = [query["expr"] for panel in BOARD["panels"] for query in panel["targets"]]
    return [*queries, *(rule["expr"] for rule in RULES)]


def test_every_name_is_a_metric_that_a_run_has() -> None:
    used = {name for one in expressions() for name in re.findall(r"mirrorless_[a-z_]+", one)}
    assert used <= NAMES.keys()
    assert {NAMES[name].emitter for name in used} <= set(Emitter) - {Emitter.VERIFY_COPY, Emitter.COPY_FUNCTION}


def test_every_panel_has_a_title_and_a_meaning_of_its_own() -> None:
    titles = [panel["title"] for panel in BOARD["panels"]]
    assert len(set(titles)) == len(titles)
    assert all(panel["description"] for panel in BOARD["panels"])


def test_every_alert_says_what_to_do() -> None:
    for rule in RULES:
        assert rule["annotations"]["description"].endswith(".")
        assert rule["labels"]["severity"] in ("critical", "warning")


@pytest.mark.skipif(not Path(PROMTOOL).exists(), reason="promtool is not on the path: run `make promtool`, on Debian")
def test_the_alerts_pass_their_own_tests() -> None:
    for command in (["check", "rules", "alerts.yml"], ["test", "rules", "alerts_test.yml"]):
        ended = subprocess.run([PROMTOOL, *command], cwd=monitoring.FOLDER, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stdout + ended.stderr

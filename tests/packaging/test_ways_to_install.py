"""The chart, the compose file and the action: parsed here, and the chart linted and rendered where helm is there."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from click.testing import CliRunner

from mirrorless.cli import root
from mirrorless.local.jars import cache_folder
from tests.support.template import ROOT

CHART: Final = ROOT / "charts" / "mirrorless"
PROJECT_VERSION: Final = re.search(r'^version = "(.*)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
HELM: Final = shutil.which("helm") or str(cache_folder(os.environ) / "helm")
with_helm = pytest.mark.skipif(not Path(HELM).exists(), reason="helm is not there: make helm")
# One that was built by `go install` believes in a cluster of 1.20.
CLUSTER: Final = ("--kube-version", "1.33.0")
USUAL: Final = ("--set", "image.repository=r.example/mirrorless", "--set", "configuration=clusters = a\\, b")
EVERYTHING: Final = (
    *("--set", "image.repository=r.example/mirrorless", "--set", "existingSecret=mm2", "--set", "replicas=2"),
    *("--set", "web.tokenSecret=token", "--set", "web.actions=true", "--set", "metrics.serviceMonitor.enabled=true"),
    *("--set", "environmentFromSecrets={logins}", "--set", "secretMounts[0].secretName=tls"),
    *("--set", "secretMounts[0].mountPath=/etc/tls", "--set", "serviceAccount.annotations.role=arn"),
    *("--set", "environment[0].name=A", "--set", "environment[0].value=b", "--set", "podLabels.team=x"),
)


def helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([HELM, *arguments], capture_output=True, text=True, check=False, timeout=60)


def rendered(*settings: str) -> dict[str, Any]:
    done = helm("template", *CLUSTER, "prod", str(CHART), *settings)
    assert done.returncode == 0, done.stderr
    return {one["kind"]: one for one in yaml.safe_load_all(done.stdout) if one}


def test_the_chart_has_the_version_of_the_package() -> None:
    assert PROJECT_VERSION is not None
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == PROJECT_VERSION[1]


@with_helm
@pytest.mark.parametrize("settings", [USUAL, EVERYTHING], ids=["usual", "everything"])
def test_the_chart_is_linted(settings: tuple[str, ...]) -> None:
    done = helm("lint", "--strict", str(CHART), *settings)
    assert done.returncode == 0, done.stdout


@with_helm
def test_the_chart_runs_the_image_as_nobody_in_particular() -> None:
    objects = rendered(*USUAL)
    assert set(objects) == {"ConfigMap", "Deployment", "PodDisruptionBudget", "Service", "ServiceAccount"}
    pod = objects["Deployment"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert PROJECT_VERSION is not None
    assert container["image"] == f"r.example/mirrorless:v{PROJECT_VERSION[1]}"
    assert pod["securityContext"]["runAsNonRoot"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    probes = [container[f"{one}Probe"]["httpGet"]["path"] for one in ("liveness", "readiness")]
    assert probes == ["/healthz", "/readyz"]
    assert objects["ConfigMap"]["data"] == {"mm2.properties": "clusters = a, b"}
    options = {one.split("=")[0] for one in container["args"] if one.startswith("--")}
    known = CliRunner().invoke(root, ["run", "--help"]).output
    assert [one for one in options if one not in known] == []


@with_helm
def test_everything_that_can_be_set_arrives() -> None:
    objects = rendered(*EVERYTHING)
    assert {"ServiceMonitor", "Deployment"} <= set(objects)
    assert "ConfigMap" not in objects
    pod = objects["Deployment"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert "--web-actions" in container["args"]
    assert [one["name"] for one in container["env"]] == ["MIRRORLESS_WEB_TOKEN", "A"]
    assert container["envFrom"] == [{"secretRef": {"name": "logins"}}]
    assert {"name": "secret-0", "secret": {"secretName": "tls"}} in pod["volumes"]
    assert {"name": "secret-0", "mountPath": "/etc/tls", "readOnly": True} in container["volumeMounts"]


@with_helm
@pytest.mark.parametrize(
    ("settings", "line"),
    [
        (("--set", "image.repository=r"), "set one of configuration"),
        (("--set", "image.repository=r", "--set", "existingSecret=a,existingConfigMap=b"), "set one of configuration"),
        (("--set", "configuration=a"), "set image.repository to where the image was pushed"),
    ],
)
def test_what_is_missing_is_one_line(settings: tuple[str, ...], line: str) -> None:
    done = helm("template", *CLUSTER, "prod", str(CHART), *settings)
    assert done.returncode != 0
    assert line in done.stderr


def test_the_compose_file_names_what_is_there() -> None:
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    assert set(services) == {"primary", "backup", "mirrorless", "prometheus", "grafana"}
    for service in services.values():
        for volume in service.get("volumes", ()):
            assert (ROOT / volume.split(":")[0]).exists(), volume
        assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    words = services["mirrorless"]["command"]
    known = CliRunner().invoke(root, ["run", "--help"]).output
    assert [one for one in words if one.startswith("--") and one.split("=")[0] not in known] == []
    file = ROOT / "examples" / "compose" / "mm2.properties"
    checked = CliRunner().invoke(root, ["config", "check", str(file)])
    assert checked.output.endswith("1 flow, 0 errors, 0 warnings\n")
    for alias in ("primary", "backup"):
        listeners = services[alias]["environment"]["KAFKA_ADVERTISED_LISTENERS"]
        assert f"INSIDE://{alias}:9092" in listeners
    json.loads((ROOT / "monitoring" / "grafana.json").read_text())


def test_the_action_plans_with_the_package_beside_it() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    steps = action["runs"]["steps"]
    assert [re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", one["uses"]) is not None for one in steps if "uses" in one] == [True]
    scripts = [one["run"] for one in steps if "run" in one]
    assert any("mirrorless plan " in one for one in scripts)
    for one in scripts:
        assert "${{" not in one  # what a pull request names is no part of a script
        assert subprocess.run(["/bin/bash", "-n", "-c", one], check=False).returncode == 0

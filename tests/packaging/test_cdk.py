"""The example of docs/deployment.md for CDK is synthesised, by CDK itself: `make cdk`, which needs Node.js."""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.template import ROOT

if TYPE_CHECKING:
    from pathlib import Path

PYTHON = ROOT / ".venv-cdk" / "bin" / "python"
SCRIPT = """
import aws_cdk as cdk

bucket, key, version = "configuration", "mm2.properties", "1"
subnets, group, primary, backup = ["subnet-1", "subnet-2"], "sg-1", "arn:primary", "arn:backup"

class Mirrorless(cdk.Stack):
    def __init__(self, scope, name):
        super().__init__(scope, name)
{example}

app = cdk.App(outdir="out")
Mirrorless(app, "mirrorless")
app.synth()
"""


def example() -> str:
    """The Python of the page, as the body of a constructor."""
    (found,) = re.findall(
        r"```python\n(from aws_cdk import.+?)```", (ROOT / "docs" / "deployment.md").read_text(), flags=re.DOTALL
    )
    return "\n".join(f"        {line}" if line else line for line in str(found).splitlines())


def test_lists_are_given_as_lists() -> None:
    assert '"SubnetIds": subnets,' in example()
    assert '"SecurityGroupIds": [group],' in example()


@pytest.mark.skipif(not PYTHON.exists(), reason="CDK is not installed: run `make cdk`")
def test_the_example_is_synthesised(tmp_path: Path) -> None:
    (tmp_path / "packaged.yaml").write_text((ROOT / "infra" / "template.yaml").read_text())
    (tmp_path / "app.py").write_text(SCRIPT.format(example=example()))
    ended = subprocess.run([PYTHON, "app.py"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=600)
    assert ended.returncode == 0, ended.stderr[-3000:]
    template: dict[str, Any] = json.loads((tmp_path / "out" / "mirrorless.template.json").read_text())
    assert template["Transform"] == "AWS::Serverless-2016-10-31"
    parameters = template["Resources"]["Forward"]["Properties"]["Parameters"]
    assert parameters["SubnetIds"] == {"Fn::Join": [",", ["subnet-1", "subnet-2"]]}
    assert parameters["SourceClusterArn"] == "arn:primary"

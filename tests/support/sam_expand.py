"""Expands a SAM template as AWS does, with samtranslator: run by the Python of `.venv-sam`, which has it.

`python sam_expand.py TEMPLATE`: the CloudFormation template as JSON on standard output. Local files become addresses in
S3, as `sam package` makes them; conditions and parameters stay.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

from samcli.yamlhelper import yaml_parse
from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator

_LOCAL = {
    "AWS::Serverless::Function": "CodeUri",
    "AWS::Serverless::LayerVersion": "ContentUri",
    "AWS::Serverless::Application": "Location",
}


def expand(path: Path) -> dict[str, Any]:
    """Return the template without SAM's resources."""
    template = yaml_parse(path.read_text())
    for resource in template["Resources"].values():
        if (name := _LOCAL.get(resource["Type"])) is not None:
            value = resource["Properties"][name]
            file = value if name == "Location" else f"{value.strip('./').replace('/', '-') or 'all'}.zip"
            address = f"https://uploads.s3.amazonaws.com/{file}" if name == "Location" else f"s3://uploads/{file}"
            resource["Properties"][name] = address
    if "Transform" not in template:
        return dict(template)
    with patch("boto3.session.Session.region_name", "eu-central-1"):
        return dict(Translator({}, Parser()).translate(template, parameter_values={}))


if __name__ == "__main__":
    json.dump(expand(Path(sys.argv[1])), sys.stdout, default=str)

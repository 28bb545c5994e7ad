"""The Terraform module: its parameters are the template's, its endpoints and rules are those that `doctor` looks for.

What it decides from variables is in locals.tf, which Terraform evaluates here without a provider. The provider's schema
is not checked here: docs/first-deployment.md has the command.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any, Final

import pytest

from mirrorless.doctor.aws.deployment import from_parameters
from mirrorless.doctor.aws.endpoints import needed_services
from tests.support.template import ACCOUNT, REGION, ROOT, TEMPLATE, Stack, cluster_arn, configuration, custom, read

if TYPE_CHECKING:
    from pathlib import Path

MODULE: Final = ROOT / "infra" / "terraform"
TERRAFORM: Final = shutil.which("terraform") or shutil.which("tofu")
with_terraform = pytest.mark.skipif(TERRAFORM is None, reason="neither terraform nor tofu is on the path")
BROKERS: Final = {
    "primary": {"security_group_id": "sg-primary"},
    "backup": {"security_group_id": "sg-backup", "port": 9096, "trigger": False},
}
SECRET: Final = f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:AmazonMSK_primary-AbCdEf"
CASES: Final[dict[str, dict[str, Any]]] = {
    "usual": {},
    "another VPC": {"broker_security_groups": {"backup": BROKERS["backup"]}},
    "no Glue, no triggers": {"parameters": {"GlueJobs": "false", "Triggers": "off"}},
    "secrets": {
        "parameters": {
            "SecretArns": SECRET,
            "FirstSecretArn": SECRET,
            "ParameterArns": f"arn:aws:ssm:{REGION}:{ACCOUNT}:parameter/kafka",
        }
    },
    "roles and several functions": {
        "parameters": {
            "Triggers": "off",
            "ClientRoleArns": "arn:aws:iam::444455556666:role/msk",
            "ForwardCopyFunctions": "3",
        }
    },
    "NAT": {"endpoints": False},
    "some are there": {"existing_endpoints": ["s3", "logs"]},
}
USUAL: Final[dict[str, Any]] = {
    "template_file": "packaged.yaml",
    "configuration": "clusters = primary, backup",
    "configuration_bucket": "configuration",
    "subnet_ids": ["subnet-1", "subnet-2"],
    "first_cluster_arn": cluster_arn("primary"),
    "second_cluster_arn": cluster_arn("backup"),
    "broker_security_groups": BROKERS,
}
FROM_RESOURCES: Final = {
    "ConfigLocation": "s3://configuration/mirrorless-prod/mm2.properties?versionId=1",
    "SecurityGroupIds": "sg-1",
    "AlarmTopicArn": f"arn:aws:sns:{REGION}:{ACCOUNT}:mirrorless-prod-alarms",
}
ROOT_MODULE: Final = """
module "case" {
  for_each = local.cases
  source = "./module"
%s
}
output "found" { value = { for name, one in module.case : name => one.found } }
"""
FOUND: Final = """
output "found" {
  value = { created = local.created, parameters = local.parameters, self_rules = local.self_rules,
            clients = local.endpoint_clients, brokers = var.broker_security_groups }
}
"""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    assert TERRAFORM is not None
    return subprocess.run(
        [TERRAFORM, *arguments],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder), "TF_IN_AUTOMATION": "1", "CHECKPOINT_DISABLE": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def prepared(folder: Path, cases: dict[str, dict[str, Any]]) -> Path:
    """Write a root module that evaluates locals.tf for each case."""
    module = folder / "module"
    module.mkdir()
    for name in ("variables.tf", "locals.tf"):
        shutil.copyfile(MODULE / name, module / name)
    (module / "found.tf").write_text(FOUND)
    given = {name: USUAL | case for name, case in cases.items()}
    (folder / "cases.json").write_text(json.dumps(given))
    (folder / "cases.tf.json").write_text(json.dumps({"locals": {"cases": '${jsondecode(file("cases.json"))}'}}))
    names = sorted({name for case in given.values() for name in case})
    lines = [f'  {name} = lookup(each.value, "{name}", null)' for name in names if name in USUAL]
    defaults = {"parameters": "{}", "endpoints": "true", "existing_endpoints": "[]"}
    lines += [f"  {name} = lookup(each.value, {json.dumps(name)}, {usual})" for name, usual in defaults.items()]
    (folder / "main.tf").write_text(ROOT_MODULE % "\n".join(lines))
    begun = run(folder, "init", "-input=false", "-no-color")
    assert begun.returncode == 0, begun.stderr
    return folder


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    folder = prepared(tmp_path_factory.mktemp("terraform"), CASES)
    applied = run(folder, "apply", "-auto-approve", "-input=false", "-no-color")
    assert applied.returncode == 0, applied.stderr
    answer = run(folder, "output", "-json", "found")
    return dict(json.loads(answer.stdout))


def polls(case: str) -> bool:
    settings = USUAL | CASES[case]
    groups = settings["broker_security_groups"].values()
    return settings.get("parameters", {}).get("Triggers") != "off" and any(one.get("trigger", True) for one in groups)


@with_terraform
def test_it_is_formatted() -> None:
    checked = run(MODULE, "fmt", "-check", "-diff", "-no-color")
    assert checked.returncode == 0, checked.stdout + checked.stderr


@with_terraform
@pytest.mark.parametrize("case", CASES)
def test_endpoints_are_those_that_the_doctor_looks_for(found: dict[str, dict[str, Any]], case: str) -> None:
    parameters = found[case]["parameters"] | FROM_RESOURCES
    deployment = from_parameters(parameters, name="mirrorless-prod", region=REGION, account=ACCOUNT)
    wanted = set(needed_services(deployment))
    if polls(case):  # the poller's, see doctor/aws/endpoints.py
        wanted |= {"lambda", "sts", "sqs"}
    elif not any(one.get("trigger", True) for one in (USUAL | CASES[case])["broker_security_groups"].values()):
        wanted.discard("sqs")  # the doctor expects a poller for each cluster of the region
    if case == "NAT":
        wanted = set()
    assert set(found[case]["created"]) == wanted - set(CASES[case].get("existing_endpoints", ()))


@with_terraform
@pytest.mark.parametrize("case", CASES)
def test_the_parameters_are_a_deployment(found: dict[str, dict[str, Any]], case: str) -> None:
    stack = Stack(TEMPLATE, found[case]["parameters"] | FROM_RESOURCES, custom(configuration()))
    forward = stack.nested["Forward"]
    assert forward.parameters["SourceClusterArn"] == cluster_arn("primary")
    assert forward.parameters["SubnetIds"] == "subnet-1,subnet-2"


@with_terraform
def test_brokers_let_the_functions_in_and_themselves_where_lambda_polls(found: dict[str, dict[str, Any]]) -> None:
    usual = found["usual"]
    assert {name: (one["security_group_id"], one["port"]) for name, one in usual["brokers"].items()} == {
        "primary": ("sg-primary", 9098),
        "backup": ("sg-backup", 9096),
    }
    assert set(usual["self_rules"]) == {"primary"}
    assert usual["clients"] == {"primary": "sg-primary"}
    off = found["no Glue, no triggers"]
    assert (off["self_rules"], off["clients"]) == ({}, {})


@with_terraform
def test_what_the_module_sets_is_refused_as_a_parameter(tmp_path: Path) -> None:
    folder = prepared(tmp_path, {"wrong": {"parameters": {"SubnetIds": "subnet-3"}}})
    applied = run(folder, "apply", "-auto-approve", "-input=false", "-no-color")
    assert applied.returncode == 1
    assert "come from the module: set its variables instead" in " ".join(applied.stderr.split())


def test_every_parameter_that_it_names_is_one_of_the_template() -> None:
    declared = set(read(TEMPLATE)["Parameters"])
    text = "".join((MODULE / name).read_text() for name in ("locals.tf", "main.tf", "variables.tf"))
    named = set(re.findall(r"\b((?:[A-Z][a-z]+){2,})\b(?=\s*=(?!=)|\")", text)) - {"StringEquals", "SourceAccount"}
    assert {"ConfigLocation", "SubnetIds", "GlueJobs", "AlarmTopicArn"} <= named
    assert named <= declared


def test_every_variable_is_described_and_the_example_sets_those_that_are_required() -> None:
    blocks = re.findall(
        r'^variable "(\w+)" \{(.*?)^\}', (MODULE / "variables.tf").read_text(), re.MULTILINE | re.DOTALL
    )
    assert all("description" in body for _, body in blocks)
    required = {name for name, body in blocks if not re.search(r"^  default ", body, re.MULTILINE)}
    page = (ROOT / "docs" / "deployment.md").read_text()
    (example,) = re.findall(r'```hcl\nmodule "mirrorless" \{\n(.*?)^\}', page, re.MULTILINE | re.DOTALL)
    given = set(re.findall(r"^  (\w+)\s+=", example, re.MULTILINE)) - {"source"}
    assert required <= given <= {name for name, _ in blocks}

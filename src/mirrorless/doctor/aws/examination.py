"""All checks of deployments on AWS. A right that is missing for one check leaves the others as they are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from mirrorless.doctor.aws import comparison, copying, endpoints, network, operation, regions, secrets
from mirrorless.doctor.aws.api import Api, Denied
from mirrorless.doctor.aws.files import described
from mirrorless.doctor.aws.stacks import deployed
from mirrorless.doctor.findings import Finding, Status
from mirrorless.errors import AwsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mirrorless.doctor.aws.deployment import Deployment

    Check = Callable[[Deployment, Api], Iterator[Finding]]

_CHECKS: Final[tuple[tuple[str, Check], ...]] = (
    (network.SUBNETS, network.check_subnets),
    (network.ZONE, network.check_zone),
    (network.GROUPS, network.check_groups),
    (endpoints.ENDPOINTS, endpoints.check_endpoints),
    (endpoints.TRIGGER_ENDPOINTS, endpoints.check_trigger_endpoints),
    (endpoints.BROKERS, endpoints.check_brokers),
    (regions.REGIONS, regions.check_regions),
    (regions.CONFIGURATION, regions.check_configuration),
    (secrets.SECRETS, secrets.check_secrets),
    (operation.CONCURRENCY, operation.check_concurrency),
    (copying.COPYING, copying.check_copying),
    (operation.TRIGGERS, operation.check_triggers),
    (operation.RUNS, operation.check_runs),
    (comparison.COMPARISON, comparison.check_comparison),
)


def examine_aws(where: str) -> dict[str, list[Finding]]:
    """Check a stack, or each deployment that a file describes; returns the findings by deployment.

    Raises `AwsError` or `ConfigurationError` if there is neither.
    """
    found = described(where) if Path(where).is_file() else [_stack(where)]
    return {one.name: examine_deployment(one, Api(one.region)) for one in found}


def _stack(name: str) -> Deployment:
    try:
        return deployed(name)
    except Denied as error:
        raise AwsError(f"stack {name} cannot be read: {error}") from None


def examine_deployment(deployment: Deployment, api: Api) -> list[Finding]:
    """Run every check, in an order in which reasons come before their effects."""
    found: list[Finding] = []
    for name, check in _CHECKS:
        try:
            found.extend(check(deployment, api))
        except (Denied, AwsError) as error:
            found.append(Finding(check=name, status=Status.NOT_CHECKED, text=str(error)))
        except Exception as error:  # noqa: BLE001 -- an answer that nobody expected hides no other finding
            text = f"unexpected answer of AWS: {type(error).__name__}: {error}"
            found.append(Finding(check=name, status=Status.NOT_CHECKED, text=text))
    return found

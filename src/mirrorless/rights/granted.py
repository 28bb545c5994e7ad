"""Whether a deployment's parameters grant what a flow needs: secrets, parameters and roles of its clients, Glue jobs.

IAM policies cannot be made of a configuration, so the parameters of the templates repeat its ARNs. A missing one would
fail every function and job with AccessDenied.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from mirrorless.settings.references import providers, secret_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mirrorless.settings import Cluster, Flow

_ROLE: Final = re.compile(r"""awsRoleArn\s*=\s*["']?([^"'\s;]+)""")
_SUFFIX: Final = 7
"""Secrets Manager ends the ARN of a secret with a hyphen and six characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Granted:
    """The ARNs of the parameters `SecretArns`, `ParameterArns` and `ClientRoleArns`; an ARN may have `*` and `?`."""

    secrets: Sequence[str] = ()
    parameters: Sequence[str] = ()
    roles: Sequence[str] = ()

    def missing(self, cluster: Cluster) -> Iterator[tuple[str, str]]:
        """Yield each key of a cluster's client that refers to what is not granted, with the reason and the fix."""
        for key, value in cluster.client.items():
            for provider, rest in providers(value):
                kind, _, _region = provider.partition("@")
                if kind == "secretsmanager" and not self._has_secret(name := secret_of(rest)[0]):
                    yield key, f"refers to secret {name}, which SecretArns does not have; add the secret's ARN to it"
                elif kind == "ssm" and not self._has_parameter(name := rest.removeprefix(":")):
                    yield key, f"refers to parameter {name}, which ParameterArns does not have; add its ARN to it"
            for role in _ROLE.findall(value):
                if not _any(self.roles, role):
                    yield key, f"has awsRoleArn {role}, which ClientRoleArns does not have; add the role's ARN to it"

    def _has_secret(self, name: str) -> bool:
        if name.startswith("arn:"):
            return _any(self.secrets, name) or any(one[:-_SUFFIX] == name for one in self.secrets)
        return any(
            one.rpartition(":secret:")[2][:-_SUFFIX] == name or _any([one], f"*:secret:{name}-000000")
            for one in self.secrets
        )

    def _has_parameter(self, name: str) -> bool:
        if name.startswith("arn:"):
            return _any(self.parameters, name)
        plain = name.partition(":")[0].lstrip("/")  # a version or a label follows the colon
        return any(fnmatchcase(plain, one.partition(":parameter/")[2]) for one in self.parameters)


def needs_jobs(flow: Flow, *, verify_schedule: str) -> tuple[str, str] | None:
    """Return what of a flow needs Glue jobs, with the reason why `GlueJobs=false` is refused, and the fix; or None."""
    left_out = "and GlueJobs=false deploys no Glue job"
    if flow.engine != "functions":
        return "mirrorless.engine", f"is {flow.engine}, {left_out}; set it to functions, or set GlueJobs=true"
    if verify_schedule:
        return "VerifySchedule", f"is {verify_schedule}, {left_out}; leave it empty, or set GlueJobs=true"
    return None


def _any(patterns: Sequence[str], text: str) -> bool:
    return any(fnmatchcase(text, one) for one in patterns)

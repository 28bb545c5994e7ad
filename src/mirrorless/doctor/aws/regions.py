"""Checks the regions and accounts of the clusters against those of the stack: rights, and which triggers there are.

Lambda polls MSK clusters of its own region only, of another account by a VPC connection, and none of MSK Serverless
there ("Creating cross-account event source mappings in Lambda").
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mirrorless.clusters.msk import regions_in
from mirrorless.doctor.aws.api import Missing
from mirrorless.doctor.findings import Finding, Status
from mirrorless.errors import ConfigurationError
from mirrorless.rights.granted import Granted, needs_jobs
from mirrorless.settings.load import understand_texts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mirrorless.doctor.aws.api import Api
    from mirrorless.doctor.aws.deployment import ClusterParameters, Deployment

REGIONS: Final = "regions"
CONFIGURATION: Final = "configuration"
_ELSEWHERE: Final = "no trigger, since it is in another"
_VERSION: Final = "?versionId="


def check_regions(deployment: Deployment, api: Api) -> Iterator[Finding]:  # noqa: ARG001 -- as all checks
    """Check each cluster's ARN and trigger, and that the stack is in the region of the cluster that it writes to."""
    for end in deployment.clusters:
        if end.cluster is not None:
            yield _cluster(end, deployment)
        if end.trigger is not None and end.trigger.region != deployment.region:
            text = f"{end.prefix}TriggerArn is in {end.trigger.region}, and Lambda polls only {deployment.region}"
            fix = f"empty {end.prefix}TriggerArn; schedules do the same work every minute"
            yield Finding(check=REGIONS, status=Status.FAILED, text=text, fix=fix)
    regions = [end.cluster.region for end in deployment.clusters if end.cluster is not None]
    written = deployment.clusters[-1].cluster
    if written is not None and written.region != deployment.region and (deployment.flows == 1 or _all_away(deployment)):
        text = f"the stack is in {deployment.region}, and the cluster that it writes to in {written.region}"
        fix = (
            f"deploy the stack in {written.region}: the copy writes nearby, and runs there if the source's region fails"
        )
        yield Finding(check=REGIONS, status=Status.WARNING, text=text, fix=fix)
    elif not regions:
        yield Finding(check=REGIONS, status=Status.OK, text="no cluster is on MSK, by its ARN")


def _all_away(deployment: Deployment) -> bool:
    return all(end.cluster is None or end.cluster.region != deployment.region for end in deployment.clusters)


def _cluster(end: ClusterParameters, deployment: Deployment) -> Finding:
    arn = end.cluster
    assert arn is not None
    name = f"{end.prefix}ClusterArn: {arn.region}"
    if deployment.polled(end) is not None:
        what = "a trigger can poll it" if end.trigger is None else "a trigger can poll it by its VPC connection"
        text = f"{name}; {what}"
    elif deployment.triggers == "off":
        text = f"{name}; no trigger, since Triggers=off: schedules do the work every minute"
    else:
        where = "region" if arn.region != deployment.region else "account"
        text = f"{name}, account {arn.account}; {_ELSEWHERE} {where}: schedules do the work every minute"
    return Finding(check=REGIONS, status=Status.OK, text=text)


def check_configuration(deployment: Deployment, api: Api) -> Iterator[Finding]:
    """Check that the configuration exists, and that IAM rights cover the regions of its brokers on MSK."""
    where = deployment.config_location
    if not where:
        yield Finding(
            check=CONFIGURATION, status=Status.FAILED, text="ConfigLocation is empty", fix="set ConfigLocation"
        )
        return
    try:
        text = _read(where, api)
    except Missing:
        fix = "upload the configuration, or correct ConfigLocation"
        yield Finding(check=CONFIGURATION, status=Status.FAILED, text=f"{where} does not exist", fix=fix)
        return
    if (refused := _refused(text, deployment)) is not None:
        yield refused
        return
    named = regions_in(text)
    covered = {end.cluster.region for end in deployment.clusters if end.cluster is not None}
    if missing := sorted(named - covered):
        text = f"{where} names brokers on MSK in {', '.join(missing)}, and no parameter has the ARN of a cluster there"
        first, second = (f"{end.prefix}ClusterArn" for end in deployment.clusters)
        fix = f"set {first} or {second}; without it the roles may not log in by IAM"
        yield Finding(check=CONFIGURATION, status=Status.WARNING, text=text, fix=fix)
        return
    brokers = f"brokers on MSK in {', '.join(sorted(named))}" if named else "no broker on MSK"
    yield Finding(check=CONFIGURATION, status=Status.OK, text=f"{where}: {brokers}")


def _refused(text: str, deployment: Deployment) -> Finding | None:
    """The first secret, parameter or role that the stack's roles may not use, or a Glue job that it does not have."""
    settings = understand_texts([(deployment.config_location, text)]).settings
    if settings is None or not settings.flows:
        return None
    try:
        flow = settings.flow(deployment.flow) if deployment.flow else settings.flows[0]
    except ConfigurationError as error:
        return Finding(check=CONFIGURATION, status=Status.FAILED, text=str(error), fix="set Flow to a flow of the file")
    granted = Granted(secrets=deployment.secrets, parameters=deployment.parameters, roles=deployment.roles)
    for cluster in (flow.source, flow.target):
        for key, reason in granted.missing(cluster):
            what, _, fix = reason.partition("; ")
            text = f"{deployment.config_location}: {cluster.alias}.{key} {what}: the deployment is refused"
            return Finding(check=CONFIGURATION, status=Status.FAILED, text=text, fix=fix)
    needed = None if deployment.has_jobs else needs_jobs(flow, verify_schedule=deployment.verify.schedule)
    if needed is not None:
        what, _, fix = needed[1].partition("; ")
        text = f"{deployment.config_location}: {needed[0]} {what}: the deployment is refused"
        return Finding(check=CONFIGURATION, status=Status.FAILED, text=text, fix=fix)
    return None


def _read(where: str, api: Api) -> str:
    if where.startswith("s3://"):
        bucket, _, rest = where.removeprefix("s3://").partition("/")
        key, _, version = rest.partition(_VERSION)
        answer = api.ask("s3:GetObject", Bucket=bucket, Key=key, **({"VersionId": version} if version else {}))
        return bytes(answer["Body"].read()).decode("utf-8", "replace")
    answer = api.ask("ssm:GetParameter", Name=where.removeprefix("ssm:"), WithDecryption=True)
    return str(answer["Parameter"]["Value"])

"""Switches: what tells clients that they are to use the other cluster. Every switch may be thrown again."""

from __future__ import annotations

import json
import os
import tempfile
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mirrorless.errors import AwsError, OperationError
from mirrorless.operations.fences import run_command
from mirrorless.settings.aws import client

if TYPE_CHECKING:
    from mirrorless.operation_log.records import Request
    from mirrorless.settings import Cluster

_HTTP_S: Final = 10.0
_TTL_S: Final = 30


def document(operation: str, request: Request, cluster: Cluster, *, dry_run: bool) -> dict[str, Any]:
    """Return what `http` and `command` get: the operation, and the cluster that clients are to use."""
    return {
        "operation": operation,
        "kind": request.kind,
        "from": request.source,
        "to": request.target,
        "bootstrap_servers": cluster.bootstrap_servers,
        "topics": request.topics,
        "groups": request.groups,
        "dry_run": dry_run,
    }


def throw(switch: str, said: dict[str, Any]) -> None:
    """Throw one switch, or with `dry_run` only check that it could be thrown; raises `MirrorlessError`."""
    kind, _, rest = switch.partition(":")
    servers, dry_run = str(said["bootstrap_servers"]), bool(said["dry_run"])
    match kind:
        case "ssm":
            _ssm(rest, servers, dry_run=dry_run)
        case "route53":
            zone, _, name = rest.partition("/")
            _route53(zone, name, servers, dry_run=dry_run)
        case "file":
            _file(Path(rest), servers, dry_run=dry_run)
        case "command":
            run_command(rest, "check" if dry_run else "switch", said)
        case _:
            _post(switch if kind == "https" or rest.startswith("//") else rest, said)


def _ssm(name: str, servers: str, *, dry_run: bool) -> None:
    """Set a parameter to the bootstrap servers; it must exist, so that a wrong name is noticed."""
    try:
        with client("ssm", region=None) as ssm:
            found = ssm.get_parameter(Name=name)["Parameter"]
            if not dry_run and found["Value"] != servers:
                ssm.put_parameter(Name=name, Value=servers, Type=found["Type"], Overwrite=True)
    except ValueError as error:
        raise AwsError(f"switch ssm:{name}: {error}") from None


def _route53(zone: str, name: str, servers: str, *, dry_run: bool) -> None:
    """Set a CNAME to the first bootstrap server's host."""
    host = servers.split(",", maxsplit=1)[0].strip().rpartition(":")[0]
    change = {
        "Action": "UPSERT",
        "ResourceRecordSet": {
            "Name": name,
            "Type": "CNAME",
            "TTL": _TTL_S,
            "ResourceRecords": [{"Value": host}],
        },
    }
    try:
        with client("route53", region=None) as route53:
            route53.get_hosted_zone(Id=zone)
            if not dry_run:
                route53.change_resource_record_sets(HostedZoneId=zone, ChangeBatch={"Changes": [change]})
    except ValueError as error:
        raise AwsError(f"switch route53:{zone}/{name}: {error}") from None


def _file(path: Path, servers: str, *, dry_run: bool) -> None:
    """Replace a file by the bootstrap servers, at once: no reader sees half of it."""
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "w") as file:
                file.write(f"{servers}\n")
            if dry_run:
                Path(temporary).unlink()
            else:
                Path(temporary).chmod(path.stat().st_mode & 0o777 if path.exists() else 0o644)
                Path(temporary).replace(path)
        except OSError:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise OperationError(f"switch file:{path}: {error.strerror or error}") from None


def _post(url: str, said: dict[str, Any]) -> None:
    """POST the operation as JSON; any answer of 2xx means done."""
    request = urllib.request.Request(  # noqa: S310 -- the operator's own URL
        url, data=json.dumps(said).encode(), headers={"Content-Type": "application/json"}, method="POST"
    )
    try:
        with urllib.request.urlopen(request, timeout=_HTTP_S):  # noqa: S310
            return
    except (urllib.error.URLError, OSError, ValueError) as error:
        raise OperationError(f"switch http:{url}: {getattr(error, 'reason', error)}") from None

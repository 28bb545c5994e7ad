"""Switches: what tells clients that they are to use the other cluster. Every switch may be thrown again."""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mirrorless.errors import AwsError, OperationError
from mirrorless.operations.fences import run_command
from mirrorless.settings.aws import client

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mirrorless.operation_log.records import OperationState
    from mirrorless.settings import Cluster

_HTTP_S: Final = 10.0
_TTL_S: Final = 30
_LOCK_S: Final = 10.0
_LOOK_S: Final = 0.1


def document(operation: OperationState, cluster: Cluster, *, dry_run: bool) -> dict[str, Any]:
    """Return what `http` and `command` get: the operation, and the cluster that clients are to use.

    `number` grows from operation to operation: a receiver that has seen a higher one may ignore a call that is late.
    """
    request = operation.request
    return {
        "operation": operation.id,
        "number": operation.number,
        "kind": request.kind,
        "from": request.source,
        "to": request.target,
        "bootstrap_servers": cluster.bootstrap_servers,
        "topics": request.topics,
        "groups": request.groups,
        "dry_run": dry_run,
    }


def throw(switch: str, said: dict[str, Any], *, confirm: Callable[[], None] = lambda: None) -> None:
    """Throw one switch, or with `dry_run` only check that it could be thrown; raises `MirrorlessError`.

    `confirm` raises if the operation was lost; it is called just before each change.
    """
    kind, _, rest = switch.partition(":")
    servers, dry_run = str(said["bootstrap_servers"]), bool(said["dry_run"])
    match kind:
        case "ssm":
            _ssm(rest, servers, confirm, dry_run=dry_run)
        case "route53":
            zone, _, name = rest.partition("/")
            _route53(zone, name, servers, confirm, dry_run=dry_run)
        case "file":
            _file(Path(rest), servers, 0 if dry_run else int(said["number"]))
        case "command":
            confirm()
            run_command(rest, "check" if dry_run else "switch", said)
        case _:
            confirm()
            _post(switch if kind == "https" or rest.startswith("//") else rest, said)


def _ssm(name: str, servers: str, confirm: Callable[[], None], *, dry_run: bool) -> None:
    """Set a parameter to the bootstrap servers; it must exist, so that a wrong name is noticed."""
    try:
        with client("ssm", region=None) as ssm:
            found = ssm.get_parameter(Name=name)["Parameter"]
            confirm()
            if not dry_run and found["Value"] != servers:
                ssm.put_parameter(Name=name, Value=servers, Type=found["Type"], Overwrite=True)
    except ValueError as error:
        raise AwsError(f"switch ssm:{name}: {error}") from None


def _route53(zone: str, name: str, servers: str, confirm: Callable[[], None], *, dry_run: bool) -> None:
    """Set a CNAME to the first bootstrap server's host.

    The record that was read is deleted in the same batch, which Route 53 refuses if it was changed since.
    """
    host = servers.split(",", maxsplit=1)[0].strip().rpartition(":")[0]
    wanted = {"Name": name, "Type": "CNAME", "TTL": _TTL_S, "ResourceRecords": [{"Value": host}]}
    try:
        with client("route53", region=None) as route53:
            route53.get_hosted_zone(Id=zone)
            found = route53.list_resource_record_sets(
                HostedZoneId=zone, StartRecordName=name, StartRecordType="CNAME", MaxItems="1"
            )["ResourceRecordSets"]
            full = name.rstrip(".").lower() + "."
            there = [one for one in found if one["Type"] == "CNAME" and one["Name"].lower() == full]
            if dry_run or [one.get("ResourceRecords") for one in there] == [wanted["ResourceRecords"]]:
                return
            changes = [*({"Action": "DELETE", "ResourceRecordSet": one} for one in there)]
            changes.append({"Action": "CREATE", "ResourceRecordSet": wanted})
            confirm()
            route53.change_resource_record_sets(HostedZoneId=zone, ChangeBatch={"Changes": changes})
    except ValueError as error:
        raise AwsError(f"switch route53:{zone}/{name}: {error}") from None


def _file(path: Path, servers: str, number: int) -> None:
    """Replace a file by the bootstrap servers, at once: no reader sees half of it. Only look with number 0.

    A file beside it has the number of the operation that threw it last, and is locked meanwhile: one that was suspended
    cannot replace what a later one wrote.
    """
    try:
        with _alone(path, number):
            _replace(path, servers, dry_run=not number)
    except OSError as error:
        raise OperationError(f"switch file:{path}: {error.strerror or error}") from None


@contextmanager
def _alone(path: Path, number: int) -> Iterator[None]:
    """Keep other processes out, and record the operation's number; raises `OperationError` for one that is late."""
    if not number:
        yield
        return
    with (path.parent / f".{path.name}.operation").open("a+") as beside:
        until = time.monotonic() + _LOCK_S
        while True:
            try:
                fcntl.flock(beside, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    reason = "another process is replacing it, and may be suspended: end that process"
                    raise OperationError(f"switch file:{path}: {reason}") from None
                time.sleep(_LOOK_S)
        beside.seek(0)
        last = beside.read().strip()
        if last.isdecimal() and int(last) > number:
            raise OperationError(f"switch file:{path}: a later operation has thrown it")
        yield
        beside.truncate(0)
        beside.write(f"{number}\n")


def _replace(path: Path, servers: str, *, dry_run: bool) -> None:
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

"""Fences: what blocks writers on the cluster that applications leave, and is removed exactly.

Both built-in fences make producers fail with errors that they do not retry: TOPIC_AUTHORIZATION_FAILED and
RECORD_TOO_LARGE. `config` is the size of a transaction marker: below it a broker drops the markers, and a transaction
stays open for ever (measured, Kafka 4.3.0). Syncs of configs and ACLs leave both out (`metadata.fences`).
"""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any, Final, Protocol

from mirrorless.clusters.acls import NoAcls, acls_seen_by, create_acls, delete_acls, topic_acls
from mirrorless.clusters.admin import Admin
from mirrorless.clusters.configs import ConfigChange, Origin, alter_topic_configs, topic_configs
from mirrorless.clusters.configs_seen import topic_config_seen_by
from mirrorless.clusters.connection_errors import grant
from mirrorless.clusters.kafka_admin_client import admin_client
from mirrorless.clusters.msk import is_serverless
from mirrorless.clusters.security import logs_in_with_iam
from mirrorless.clusters.topics import partition_counts
from mirrorless.errors import ClusterError, ClusterUnavailable, OperationError
from mirrorless.kafka_python.errors import KafkaError
from mirrorless.metadata.fences import FENCED_BYTES, MAX_BYTES, deny_write
from mirrorless.operation_log.records import only

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from mirrorless.clusters.acls import Acl
    from mirrorless.clusters.admin import Refusal
    from mirrorless.kafka_python.admin import AdminRequests
    from mirrorless.settings import Cluster, Flow, Settings

COMMAND: Final = "command:"
BLOCKS_FLOWS: Final = ("acl", "config")
"""Fences that block flows to the cluster too; what a command does is the operator's."""
_ALTER: Final = "ALTER on the cluster"
_ALTER_CONFIGS: Final = "ALTER_CONFIGS on the topics"
_COMMAND_S: Final = 120.0
_LAST_WORDS: Final = 300


class WriterFence(Protocol):
    """A fence around topics of one cluster; every method may be repeated. All raise `ClusterError`."""

    def plan(self, topics: Sequence[str]) -> dict[str, Any]:
        """Return what `apply` is to change, and `remove` to restore."""

    def apply(self, planned: dict[str, Any]) -> None:
        """Block writers."""

    def unseen(self, planned: dict[str, Any]) -> list[str]:
        """Return a line for each broker that does not know the fence yet."""

    def remove(self, planned: dict[str, Any]) -> None:
        """Restore what was before."""

    def left(self, planned: dict[str, Any]) -> list[str]:
        """Return a line for each broker that still knows the fence after its removal."""


def resolved(flow: Flow, settings: Settings, topics: Iterable[str]) -> str:
    """Return the fence that `auto` is for topics of a flow's source; raises `ClusterUnavailable`.

    Clients that log in with IAM ignore ACLs. Without ACLs, or without the right to see them, it is `config`; and where
    a topic has none, since its first one would take READ from everybody (`allow.everyone.if.no.acl.found`). Flows to
    other clusters do not know the operation and would sync its ACLs: with them it is `config` too, and `acl` raises
    `OperationError`.
    """
    value, cluster = flow.fence, flow.source
    syncing = [
        one.name
        for one in settings.flows
        if one.source.alias == cluster.alias and one.target.alias != flow.target.alias and one.sync_topic_acls_enabled
    ]
    if value == "acl" and syncing:
        raise OperationError(
            f"the fence acl cannot be used: {', '.join(syncing)} would sync its ACLs, which block writers, to other "
            f"clusters; set mirrorless.fence=config, or sync.topic.acls.enabled=false for {' and '.join(syncing)}"
        )
    if value != "auto":
        return value
    if syncing or is_serverless(cluster) or logs_in_with_iam(cluster):
        return "config"
    there = topic_acls(cluster)
    return "config" if isinstance(there, NoAcls) or without_acls(there, topics) else "acl"


def without_acls(there: Iterable[Acl], topics: Iterable[str]) -> list[str]:
    """Return the topics that no ACL allows anything on."""
    allowing = [acl for acl in there if acl.permission == "ALLOW"]
    literal = {acl.topic for acl in allowing if acl.pattern == "LITERAL"}
    prefixes = tuple(acl.topic for acl in allowing if acl.pattern == "PREFIXED")
    return [] if "*" in literal else [one for one in topics if one not in literal and not one.startswith(prefixes)]


def fence_of(value: str, cluster: Cluster, admin: Admin | None = None) -> WriterFence:
    """Return the fence of a setting that is resolved."""
    if value.startswith(COMMAND):
        return CommandFence(value.removeprefix(COMMAND), cluster)
    if value == "none":
        return NoFence()
    admin = admin or Admin(cluster)
    return AclFence(cluster, admin) if value == "acl" else ConfigFence(cluster, admin)


_ATTEMPTS: Final = 5


def settle(fence: WriterFence, planned: dict[str, Any], fenced: Callable[[], set[str]]) -> None:
    """Let a fence be as the operations' logs say, after it was changed by a process that does not own it any more.

    All fences look alike: it is taken back from topics that no operation fences now, and put up again on the others.
    `fenced` reads the logs; they are read again afterwards, since another operation may begin meanwhile. Raises
    `ClusterError`.
    """
    topics = {topic for part in planned.values() for topic in part}
    for _ in range(_ATTEMPTS):
        kept = fenced() & topics
        if kept:
            fence.apply(only(planned, kept))
        if topics - kept:
            fence.remove(only(planned, topics - kept))
        if fenced() & topics == kept:
            return


class NoFence:
    """Writers are stopped by their owners."""

    def plan(self, topics: Sequence[str]) -> dict[str, Any]:  # noqa: ARG002
        """Change nothing."""
        return {}

    def apply(self, planned: dict[str, Any]) -> None:
        """Change nothing."""

    def unseen(self, planned: dict[str, Any]) -> list[str]:  # noqa: ARG002
        """Nothing has to be seen."""
        return []

    def remove(self, planned: dict[str, Any]) -> None:
        """Change nothing."""

    def left(self, planned: dict[str, Any]) -> list[str]:  # noqa: ARG002
        """Nothing is left."""
        return []


class AclFence:
    """DENY WRITE for `User:*` on each topic; super users are not bound by it."""

    def __init__(self, cluster: Cluster, admin: Admin) -> None:
        self._cluster = cluster
        self._admin = admin

    def plan(self, topics: Sequence[str]) -> dict[str, Any]:
        """Return the topics that have no such ACL yet: one of another process is not removed."""
        there = topic_acls(self._cluster)
        if isinstance(there, NoAcls):
            raise ClusterError(f"fence acl cannot be used: {there.reason}", cluster=self._cluster.alias)
        if bare := without_acls(there, topics):
            raise ClusterError(
                f"fence acl cannot be used: {bare[0]} has no ACL that allows anything, and a first one would take READ "
                "from everybody where allow.everyone.if.no.acl.found is true; set mirrorless.fence=config",
                cluster=self._cluster.alias,
            )
        return {"denied": [topic for topic in topics if deny_write(topic) not in there]}

    def apply(self, planned: dict[str, Any]) -> None:
        """Add the ACLs."""
        _refuse(self._cluster, "adding DENY WRITE", create_acls(self._admin, _denials(planned)), right=_ALTER)

    def unseen(self, planned: dict[str, Any]) -> list[str]:
        """Ask every broker."""
        wanted = _denied(planned)
        return [
            f"{broker} does not know the ACLs yet"
            for broker in _brokers_without(
                self._cluster, self._admin, lambda client, node: wanted <= acls_seen_by(client, node)
            )
        ]

    def left(self, planned: dict[str, Any]) -> list[str]:
        """Ask every broker."""
        gone = _denied(planned)
        return [
            f"{broker} still knows the ACLs"
            for broker in _brokers_without(
                self._cluster, self._admin, lambda client, node: not gone & acls_seen_by(client, node)
            )
        ]

    def remove(self, planned: dict[str, Any]) -> None:
        """Delete exactly these ACLs."""
        _refuse(self._cluster, "deleting DENY WRITE", delete_acls(self._admin, _denials(planned)), right=_ALTER)


class ConfigFence:
    """`max.message.bytes` of each topic so small that no batch of records is accepted."""

    def __init__(self, cluster: Cluster, admin: Admin) -> None:
        self._cluster = cluster
        self._admin = admin

    def plan(self, topics: Sequence[str]) -> dict[str, Any]:
        """Return each topic's own value, None if it has the cluster's default."""
        found, failed = topic_configs(self._admin, topics)
        for topic, refusal in failed.items():
            raise ClusterError(f"fence config: {topic}: {refusal.text}", cluster=self._cluster.alias)
        before: dict[str, str | None] = {}
        for topic, configs in found.items():
            one = configs[MAX_BYTES]
            before[topic] = one.value if one.origin == Origin.TOPIC else None
        return {"before": before}

    def apply(self, planned: dict[str, Any]) -> None:
        """Lower the limit."""
        change = [ConfigChange(MAX_BYTES, FENCED_BYTES)]
        _refuse(
            self._cluster,
            f"setting {MAX_BYTES}",
            alter_topic_configs(self._admin, dict.fromkeys(planned["before"], change)),
            right=_ALTER_CONFIGS,
        )

    def unseen(self, planned: dict[str, Any]) -> list[str]:
        """Ask every broker."""
        topics = list(planned["before"])

        def knows(client: AdminRequests, node: int) -> bool:
            seen = topic_config_seen_by(client, node, topics, MAX_BYTES)
            return all(seen.get(topic) == FENCED_BYTES for topic in topics)

        return [
            f"{broker} does not know {MAX_BYTES} yet" for broker in _brokers_without(self._cluster, self._admin, knows)
        ]

    def left(self, planned: dict[str, Any]) -> list[str]:
        """Ask every broker."""
        there = partition_counts(self._admin.metadata())
        topics = [topic for topic, value in planned["before"].items() if value != FENCED_BYTES and topic in there]

        def is_rid(client: AdminRequests, node: int) -> bool:
            return FENCED_BYTES not in topic_config_seen_by(client, node, topics, MAX_BYTES).values()

        return [
            f"{broker} still has the fence's {MAX_BYTES}"
            for broker in _brokers_without(self._cluster, self._admin, is_rid)
        ]

    def remove(self, planned: dict[str, Any]) -> None:
        """Set what was before; a value that was set by others meanwhile stays."""
        now, _ = topic_configs(self._admin, planned["before"])
        changes = {
            topic: [ConfigChange(MAX_BYTES, before)]
            for topic, before in planned["before"].items()
            if topic in now and now[topic][MAX_BYTES].value == FENCED_BYTES
        }
        _refuse(
            self._cluster, f"restoring {MAX_BYTES}", alter_topic_configs(self._admin, changes), right=_ALTER_CONFIGS
        )


class CommandFence:
    """A command of the operator's: `PATH fence` or `PATH unfence`, with cluster and topics as JSON on its input."""

    def __init__(self, path: str, cluster: Cluster) -> None:
        self._path = path
        self._cluster = cluster

    def plan(self, topics: Sequence[str]) -> dict[str, Any]:
        """Return the topics."""
        return {"topics": list(topics)}

    def apply(self, planned: dict[str, Any]) -> None:
        """Run it with `fence`."""
        self._run("fence", planned)

    def unseen(self, planned: dict[str, Any]) -> list[str]:  # noqa: ARG002
        """It is in force when the command ends."""
        return []

    def remove(self, planned: dict[str, Any]) -> None:
        """Run it with `unfence`."""
        self._run("unfence", planned)

    def left(self, planned: dict[str, Any]) -> list[str]:  # noqa: ARG002
        """It is removed when the command ends."""
        return []

    def _run(self, word: str, planned: dict[str, Any]) -> None:
        run_command(
            self._path,
            word,
            {
                "cluster": self._cluster.alias,
                "bootstrap_servers": self._cluster.bootstrap_servers,
                "topics": planned["topics"],
            },
        )


def run_command(path: str, word: str, document: dict[str, Any]) -> None:
    """Run a command of the operator's with a word and a JSON document; raises `OperationError` if it fails."""
    try:
        done = subprocess.run(
            [path, word],
            input=json.dumps(document),
            text=True,
            capture_output=True,
            timeout=_COMMAND_S,
            check=False,
        )
    except OSError as error:
        raise OperationError(f"command {path} {word} cannot be run: {error.strerror or error}") from None
    except subprocess.TimeoutExpired:
        raise OperationError(f"command {path} {word} did not end in {_COMMAND_S:.0f} s") from None
    if done.returncode:
        said = " ".join((done.stderr or done.stdout).split())[-_LAST_WORDS:]
        raise OperationError(f"command {path} {word} ended with status {done.returncode}: {said or 'no output'}")


def _denials(planned: dict[str, Any]) -> list[Acl]:
    return [deny_write(topic) for topic in planned["denied"]]


def _denied(planned: dict[str, Any]) -> set[tuple[str, str, str, str]]:
    return {(acl.topic, acl.principal, acl.operation, acl.permission) for acl in _denials(planned)}


def _brokers_without(cluster: Cluster, admin: Admin, agrees: Callable[[AdminRequests, int], bool]) -> list[str]:
    """Return the brokers that do not agree, in words; raises `ClusterUnavailable`."""
    try:
        client = admin_client(cluster)
        try:
            blind = [node for node in sorted(admin.metadata().brokers) if not agrees(client, node)]
        finally:
            client.close()
    except (KafkaError, OSError) as error:
        raise ClusterUnavailable(str(error) or type(error).__name__, cluster=cluster.alias) from error
    return [f"broker {node} of {cluster.alias}" for node in blind]


def _refuse(cluster: Cluster, what: str, answers: dict[Any, Refusal | None], *, right: str) -> None:
    """Raise `ClusterError` for the first of a batch that failed."""
    failed = [(one, refusal) for one, refusal in answers.items() if refusal is not None]
    if failed:
        one, refusal = failed[0]
        more = f" and {len(failed) - 1} more" if len(failed) > 1 else ""
        text = f"{what} failed: {one}{more}: {refusal.text}{grant(refusal.code, right)}"
        raise ClusterError(text, cluster=cluster.alias)

"""The tree of errors that are raised on purpose.

    MirrorlessError
    ├── ConfigurationError      a file, a key and a value that cannot be used
    │   └── FlowNotEnabled      the file is valid, but the flow does not exist in it or is disabled
    ├── PrerequisiteError       this machine lacks something: Java, a jar, a free port
    ├── AwsError                a service of AWS refused or failed a request; retriable
    ├── FlowPaused              the flow was paused on purpose, here or by MirrorMaker 2's operator
    ├── SameClusterError        both ends of a flow are the same cluster; nothing was written
    │   └── CopiedClusterIdError  the two clusters look different, but report the same id
    ├── OperationError          an operation cannot begin or continue: another is open, or another process runs it
    ├── LoopError               flows that keep topic names would replicate a topic in a loop; nothing was written
    ├── ClusterError            a cluster refused or failed a request
    │   ├── ClusterUnavailable  the cluster did not answer in time; retriable
    │   └── MirrorMaker2Runs    MirrorMaker 2 still copies the flow and has to be stopped; retriable
    │       └── MirrorMaker2MayRun  the members of its group may do other work; minutes later it is known
    └── PartitionError          one partition stops; the others continue
        ├── CorruptBatch        bytes that do not match their checksum, or make no sense
        ├── UnsupportedBatch    a batch that cannot be appended as it is
        ├── Loop                records of the target that a flow of another file copied into the source
        ├── AppendRefused       the target refuses this batch permanently
        └── Gap                 records are missing on the source or on the target

`retriable` says whether the same call may succeed later without a change by the operator. Texts never hold a secret.
"""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar, TypeVar

__all__ = [
    "AppendRefused",
    "AwsError",
    "ClusterError",
    "ClusterUnavailable",
    "ConfigurationError",
    "CopiedClusterIdError",
    "CorruptBatch",
    "FlowNotEnabled",
    "FlowPaused",
    "Gap",
    "GapKind",
    "Loop",
    "LoopError",
    "MirrorMaker2MayRun",
    "MirrorMaker2Runs",
    "MirrorlessError",
    "OperationError",
    "PartitionError",
    "PrerequisiteError",
    "SameClusterError",
    "UnsupportedBatch",
]

_Error = TypeVar("_Error", bound=BaseException)


def one_line(text: str) -> str:
    """Return a text with escapes for line breaks and other characters that cannot be printed."""
    return text if text.isprintable() else "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)


def without_frames(error: _Error) -> _Error:
    """Return an error without its traceback, cause and context, so that it can be kept.

    Frames keep all of their variables alive, responses of several MiB among them; a frame that holds the error makes a
    reference cycle, which lives until the next garbage collection.
    """
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


class MirrorlessError(Exception):
    """Root of every error that is raised on purpose; its text is one line for the operator."""

    retriable: ClassVar[bool] = False


class ConfigurationError(MirrorlessError):
    """A setting that cannot be used: the text has the file and line, the key, the value and what to change."""

    def __init__(
        self,
        reason: str,
        *,
        file: str | None = None,
        line: int | None = None,
        key: str | None = None,
        value: str | None = None,
    ) -> None:
        self.file = file
        self.key = key
        self.value = value
        self.reason = reason
        self.line = line
        where = (f"{file}: " if line is None else f"{file}:{line}: ") if file else ""
        if key is not None:
            where += f"{key}={value}: " if value is not None else f"{key}: "
        super().__init__(one_line(where + reason))


class FlowNotEnabled(ConfigurationError):
    """The configuration is valid, but the flow is not enabled in it: processes that run for the flow have to end."""


class PrerequisiteError(MirrorlessError):
    """This machine lacks something; the text has what to install or to free."""


class AwsError(MirrorlessError):
    """A service of AWS refused or failed a request; the text has the service and its answer."""

    retriable = True


class FlowPaused(MirrorlessError):
    """A flow whose target state is PAUSED or STOPPED; nothing is copied until it is resumed.

    `topic` has the state, None if the configuration file pauses the flow.
    """

    def __init__(self, *, flow: str, state: str, topic: str | None) -> None:
        self.flow = flow
        cause = f"is {state.lower()}, according to topic {topic}; run `mirrorless resume FILE --flow '{flow}'`"
        if topic is None:
            cause = (
                "is paused by the configuration file; remove mirrorless.paused, or the state of Strimzi's connector,"
            )
        super().__init__(f"flow {flow} {cause} to resume replication")


class OperationError(MirrorlessError):
    """An operation that cannot begin or continue; the text has what to do."""


class SameClusterError(MirrorlessError):
    """Source and target of a flow are the same cluster, whatever their addresses; `fix` has what to change."""

    fix = "give each alias the bootstrap servers of its own cluster"

    def __init__(self, *, flow: str, cluster_id: str) -> None:
        self.flow = flow
        self.cluster_id = cluster_id
        super().__init__(
            f"flow {flow}: source and target are the same cluster (id {cluster_id}); nothing was written; {self.fix}"
        )


class CopiedClusterIdError(SameClusterError):
    """Source and target of a flow have the same cluster id, but different brokers and topics.

    `reason` is the text without the flow. `aliases` and `brokers`, of source and target, are for the text.
    """

    def __init__(self, *, flow: str, cluster_id: str, aliases: tuple[str, str], brokers: tuple[str, str]) -> None:
        self.flow = flow
        self.cluster_id = cluster_id
        here, there = (f"{alias} ({broker})" for alias, broker in zip(aliases, brokers, strict=True))
        self.reason = (
            f"{here} and {there} have the same cluster id, {cluster_id}, but different brokers and topics: one of "
            "the clusters was formatted with a copied id"
        )
        self.fix = (
            "format the cluster without data again with a new id (kafka-storage.sh random-uuid), or confirm that "
            f"the clusters are different: set {aliases[1]}.mirrorless.cluster.id to any name but {cluster_id}"
        )
        MirrorlessError.__init__(self, f"flow {flow}: {self.reason}; nothing was written; {self.fix}")


_SKIP = ", or until mirrorless.both.directions=skip is set for all of them"
_TURNS = (
    ", or until they take turns: mirrorless.both.directions=turns, and mirrorless.active.cluster is the one of the two "
    "clusters that applications write to"
)


class LoopError(MirrorlessError):
    """Flows of one file that keep a topic's name form a cycle: the topic's records would be copied endlessly.

    `path` is the flows in order, `topic` one topic that all of them select, `more` how many others there are. `lacking`
    is the flow that `mirrorless.both.directions=skip` needs beside them.
    """

    def __init__(
        self, *, flow: str, path: tuple[str, ...], topic: str, more: int = 0, lacking: str | None = None
    ) -> None:
        self.flow = flow
        self.path = path
        self.topic = topic
        others = f" (and {more} more)" if more else ""
        if lacking is not None:
            fix = f", or until {lacking} selects the topic too: mirrorless.both.directions=skip copies no record twice"
        else:
            fix = f"{_TURNS if len(path) == 2 else ''}{_SKIP}"
        super().__init__(
            f"flow {flow}: topic {topic}{others} would be replicated in a loop by {', '.join(path)}, which all "
            "select the topic and keep its name; these flows write nothing until one of them excludes the topic "
            f"(topics.exclude) or renames it (DefaultReplicationPolicy){fix}"
        )


class ClusterError(MirrorlessError):
    """A cluster refused or failed a request; `code` is librdkafka's, where that is known."""

    def __init__(self, reason: str, *, cluster: str, code: int | None = None) -> None:
        self.cluster = cluster
        self.reason = reason.removeprefix(f"cluster {cluster}: ")  # of a reason that is an error itself
        self.code = code
        super().__init__(f"cluster {cluster}: {self.reason}")


class ClusterUnavailable(ClusterError):
    """A cluster did not answer in time."""

    retriable = True


class MirrorMaker2Runs(ClusterError):
    """MirrorMaker 2 copies the same flow to this cluster; nothing is copied until MirrorMaker 2 has stopped."""

    retriable = True


class MirrorMaker2MayRun(MirrorMaker2Runs):
    """Members of MirrorMaker 2's group that were the last to copy here; whether they still do shows within minutes."""


class PartitionError(MirrorlessError):
    """One source partition cannot be copied further; has the topic, the partition and the offset.

    `offset` is the upstream offset that the error is about, or None where no offset is at fault.
    """

    def __init__(self, reason: str, *, topic: str, partition: int, offset: int | None = None) -> None:
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.reason = reason
        at = f" at offset {offset}" if offset is not None else ""
        super().__init__(f"{topic}-{partition}{at}: {reason}")


class CorruptBatch(PartitionError):
    """The source's bytes do not match their checksum or are not a record batch; they are never appended."""


class UnsupportedBatch(PartitionError):
    """A well-formed batch that the copier cannot append as it is."""


class Loop(PartitionError):
    """A flow of another file copies the target's topic back to the source, and this flow would copy it again."""


class AppendRefused(PartitionError):
    """The target's broker refused a batch with an error that is not retriable."""


class GapKind(StrEnum):
    """Why records are missing. Values are stored in the progress topic, so they must not change."""

    RETENTION = "retention was faster than the copy"
    TRUNCATED = "the source's log was cut"
    CREATED_AGAIN = "the source topic was created again"
    TARGET_LOST = "the target lost acknowledged records"
    TARGET_HOLE = "the target refused records and took later ones"
    UNEXPLAINED = "nothing says where the copy is"
    MISPLACED = "the target does not hold identical offsets"
    """Only of a copy with identical offsets; nothing but a copy into an empty topic can repair it."""


class Gap(PartitionError):
    """The source lost records that were not copied yet, or the target lost records that were acknowledged.

    `records` is how many, where that is known: of the target for `TARGET_LOST` and `TARGET_HOLE`, of the source for all
    others.
    """

    def __init__(
        self,
        reason: str,
        *,
        kind: GapKind,
        topic: str,
        partition: int,
        offset: int | None = None,
        records: int | None = None,
    ) -> None:
        self.kind = kind
        self.records = records
        super().__init__(reason, topic=topic, partition=partition, offset=offset)

"""Everything that can go wrong, as one tree.

    MirrorlessError
    ├── ConfigurationError      a file, a key and a value that cannot be used
    │   └── FlowNotEnabled      a file that can be used, and has no such flow, or has switched it off
    ├── PrerequisiteError       something this machine lacks: Java, a jar, a free port
    ├── AwsError                a service of AWS did not do what was asked; worth another try
    ├── FlowPaused              the flow was paused on purpose, here or by MirrorMaker 2's operator
    ├── SameClusterError        both ends of a flow are one cluster; nothing was written
    │   └── CopiedClusterIdError  they look like two, and have the same id
    ├── LoopError               flows that keep names would carry a topic round in a circle; nothing was written
    ├── ClusterError            a cluster did not do what was asked
    │   ├── ClusterUnavailable  it did not answer in time; worth another try
    │   └── MirrorMaker2Runs    somebody has to stop it there first; worth another try
    │       └── MirrorMaker2MayRun  it may be at other things: which is so shows within minutes
    └── PartitionError          one partition stops; the others go on
        ├── CorruptBatch        bytes that do not match their checksum, or make no sense
        ├── UnsupportedBatch    a batch that cannot be appended as it is
        ├── Loop                records of the target that a flow of another file copied into the source
        ├── AppendRefused       the target will not take this batch, now or later
        └── Gap                 records that should be there are not, on either side

`retriable` says whether the same call may succeed later without anybody changing anything. Texts never hold a secret.
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
    "PartitionError",
    "PrerequisiteError",
    "SameClusterError",
    "UnsupportedBatch",
]

_Error = TypeVar("_Error", bound=BaseException)


def one_line(text: str) -> str:
    """Return a text with escapes for line breaks and whatever else cannot be printed."""
    return text if text.isprintable() else "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)


def without_frames(error: _Error) -> _Error:
    """Return an error that is to be kept, without the frames that it and its causes passed through.

    They would keep all that they hold, answers of several MiB among it; and where one of them holds the error, which is
    then a cycle, until garbage is collected.
    """
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


class MirrorlessError(Exception):
    """Root of every error that is raised on purpose; its text is one line for the operator."""

    retriable: ClassVar[bool] = False


class ConfigurationError(MirrorlessError):
    """A setting that cannot be used: says the file, the key, the value and what to change."""

    def __init__(
        self, reason: str, *, file: str | None = None, key: str | None = None, value: str | None = None
    ) -> None:
        self.file = file
        self.key = key
        self.value = value
        self.reason = reason
        where = f"{file}: " if file else ""
        if key is not None:
            where += f"{key}={value}: " if value is not None else f"{key}: "
        super().__init__(one_line(where + reason))


class FlowNotEnabled(ConfigurationError):
    """The configuration can be used, but the flow is not enabled in it: what runs for it has to end, not to go on."""


class PrerequisiteError(MirrorlessError):
    """This machine lacks something: says what to install or to free."""


class AwsError(MirrorlessError):
    """A service of AWS refused or failed a request; says which and what it answered."""

    retriable = True


class FlowPaused(MirrorlessError):
    """A flow whose target state is PAUSED or STOPPED; nothing is copied until it is resumed."""

    def __init__(self, *, flow: str, state: str, topic: str) -> None:
        self.flow = flow
        super().__init__(
            f"flow {flow} is {state.lower()}, as {topic} says; "
            f"nothing is copied until `mirrorless resume FILE --flow '{flow}'`"
        )


class SameClusterError(MirrorlessError):
    """Source and target of a flow are one cluster, whatever their addresses look like; `fix` says what to change."""

    fix = "give each alias the bootstrap servers of its own cluster"

    def __init__(self, *, flow: str, cluster_id: str) -> None:
        self.flow = flow
        self.cluster_id = cluster_id
        super().__init__(
            f"flow {flow}: source and target are the same cluster (id {cluster_id}); nothing was written; {self.fix}"
        )


class CopiedClusterIdError(SameClusterError):
    """Source and target of a flow have the same cluster id, and nothing else in common.

    `reason` says so without the flow. `aliases` and `brokers`, of source and target, are for the text.
    """

    def __init__(self, *, flow: str, cluster_id: str, aliases: tuple[str, str], brokers: tuple[str, str]) -> None:
        self.flow = flow
        self.cluster_id = cluster_id
        here, there = (f"{alias} ({broker})" for alias, broker in zip(aliases, brokers, strict=True))
        self.reason = (
            f"{here} and {there} have the same cluster id, {cluster_id}, but not the same brokers and topics: one of "
            "them was formatted with a copied id"
        )
        self.fix = (
            "format the one without data again with an id of its own (kafka-storage.sh random-uuid), or confirm that "
            f"they are two clusters: {aliases[1]}.mirrorless.cluster.id = NAME, any name but {cluster_id}"
        )
        MirrorlessError.__init__(self, f"flow {flow}: {self.reason}; nothing was written; {self.fix}")


class LoopError(MirrorlessError):
    """Flows of one file that keep a topic's name lead back to where they began: its records would be copied for ever.

    `path` is the flows in order, `topic` one topic that all of them select, `more` how many others there are.
    """

    def __init__(self, *, flow: str, path: tuple[str, ...], topic: str, more: int = 0) -> None:
        self.flow = flow
        self.path = path
        self.topic = topic
        others = f" (and {more} more)" if more else ""
        super().__init__(
            f"flow {flow}: topic {topic}{others} would be replicated in a loop by {', '.join(path)}, which all "
            "select it and keep its name; these flows write nothing until one of them leaves it out (topics.exclude) "
            "or renames it (DefaultReplicationPolicy)"
        )


class ClusterError(MirrorlessError):
    """A cluster refused or failed a request."""

    def __init__(self, reason: str, *, cluster: str) -> None:
        self.cluster = cluster
        super().__init__(f"cluster {cluster}: {reason}")


class ClusterUnavailable(ClusterError):
    """A cluster did not answer in time."""

    retriable = True


class MirrorMaker2Runs(ClusterError):
    """A MirrorMaker 2 copies the same flow to this cluster; nothing is copied until it has stopped."""

    retriable = True


class MirrorMaker2MayRun(MirrorMaker2Runs):
    """Nodes of a MirrorMaker 2 run that was the last to copy here; whether it still does shows within minutes."""


class PartitionError(MirrorlessError):
    """One source partition cannot be copied further; carries where.

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
    """The source's bytes do not match their checksum or are no record batch; they are never appended."""


class UnsupportedBatch(PartitionError):
    """A well-formed batch that the copier cannot append as it is."""


class Loop(PartitionError):
    """A flow of another file copies the target's topic back into the source, and this flow would copy it again."""


class AppendRefused(PartitionError):
    """The target's broker refused a batch for a reason that does not pass by itself."""


class GapKind(StrEnum):
    """What made a gap, in an operator's words."""

    RETENTION = "retention was faster than the copy"
    TRUNCATED = "the source's log was cut"
    CREATED_AGAIN = "the source topic was created again"
    TARGET_LOST = "the target lost acknowledged records"
    TARGET_HOLE = "the target refused records and took later ones"
    UNEXPLAINED = "nothing says where the copy is"


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

"""Objects in a folder or in a bucket: created once, never changed.

An object is created only if there is none of its name. That is the only thing on which two writers agree, so a store
that does not refuse a second object is refused itself (`require_conditions`).
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple, Protocol
from urllib.parse import urlsplit

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from mirrorless.errors import MirrorlessError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_UNFINISHED: Final = ".unfinished-"
_CONFLICTS: Final = 5
_DELETED_A_REQUEST: Final = 1000
_EXISTS, _CONFLICT = "PreconditionFailed", "ConditionalRequestConflict"
_MISSING: Final = ("NoSuchKey", "404", "NotFound")


class ArchiveError(MirrorlessError):
    """An archive cannot be read or written, or is not as it should be; one line with the object."""


class NoSuchObject(ArchiveError):
    """There is no object of this name."""


class Stored(NamedTuple):
    """An object: its name below the archive's location, and its bytes."""

    name: str
    size_bytes: int


class ObjectStore(Protocol):
    """Where an archive lies. Names have slashes; every method raises `ArchiveError`."""

    location: str

    def create(self, name: str, body: IO[bytes]) -> bool:
        """Create an object from the bytes of `body`; returns false, and changes nothing, if there is one."""
        ...

    def read(self, name: str, first: int = 0, size: int | None = None) -> bytes:
        """Return bytes from position `first` on, from the end if it is negative; raises `NoSuchObject`."""
        ...

    def names(self, prefix: str) -> Iterator[Stored]:
        """Yield the objects whose names begin with `prefix`, in the order of their names."""
        ...

    def delete(self, names: Iterable[str]) -> None:
        """Delete objects; names without an object are ignored."""
        ...


def open_store(location: str) -> ObjectStore:
    """Return the store of `s3://bucket/prefix` or `file:///folder`; raises `ArchiveError` for anything else."""
    parts = urlsplit(location)
    if parts.scheme == "s3" and parts.netloc:
        return BucketStore(location)
    if parts.scheme == "file" and not parts.netloc and parts.path.startswith("/"):
        return FolderStore(location)
    raise ArchiveError(f"{location}: an archive is s3://bucket/prefix or file:///folder")


def require_conditions(store: ObjectStore) -> None:
    """Create one object twice, and delete it; raises `ArchiveError` if the second one is not refused."""
    name = f"probe-{secrets.token_hex(8)}"
    with _empty() as first, _empty() as second:
        refuses = store.create(name, first) and not store.create(name, second)
    store.delete([name])
    if not refuses:
        raise ArchiveError(
            f"{store.location}: the store ignores If-None-Match: two writers would overwrite each other; use another"
        )


def _empty() -> IO[bytes]:
    return Path(os.devnull).open("rb")


class FolderStore:
    """Objects as files of a folder on this machine or one that it shares."""

    def __init__(self, location: str) -> None:
        self.location = location
        self._folder = Path(urlsplit(location).path)

    def create(self, name: str, body: IO[bytes]) -> bool:
        """As `ObjectStore`: written beside, then linked to its name, which fails if there is such a file."""
        path = self._folder / name
        beside = path.with_name(f"{_UNFINISHED}{secrets.token_hex(8)}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with beside.open("xb") as file:
                while some := body.read(1 << 20):
                    file.write(some)
                file.flush()
                os.fsync(file.fileno())
            try:
                os.link(beside, path)
            except FileExistsError:
                return False
            finally:
                beside.unlink()
            self._keep(path.parent)
        except OSError as error:
            raise self._failed(name, error) from error
        return True

    def read(self, name: str, first: int = 0, size: int | None = None) -> bytes:
        """As `ObjectStore`."""
        try:
            with (self._folder / name).open("rb") as file:
                length = os.fstat(file.fileno()).st_size
                file.seek(first if first >= 0 else max(0, length + first))
                return file.read() if size is None else file.read(size)
        except FileNotFoundError:
            raise NoSuchObject(f"{self.location}: there is no {name}") from None
        except OSError as error:
            raise self._failed(name, error) from error

    def names(self, prefix: str) -> Iterator[Stored]:
        """As `ObjectStore`."""
        folder = self._folder / prefix.rpartition("/")[0]
        found = []
        for path in folder.rglob("*") if folder.is_dir() else ():
            name = path.relative_to(self._folder).as_posix()
            if name.startswith(prefix) and not path.name.startswith(_UNFINISHED) and path.is_file():
                found.append(Stored(name, path.stat().st_size))
        yield from sorted(found)

    def delete(self, names: Iterable[str]) -> None:
        """As `ObjectStore`."""
        for name in names:
            try:
                (self._folder / name).unlink(missing_ok=True)
            except OSError as error:
                raise self._failed(name, error) from error

    def _keep(self, folder: Path) -> None:
        """Have the file's name survive a crash of the machine."""
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _failed(self, name: str, error: OSError) -> ArchiveError:
        return ArchiveError(f"{self.location}: {name}: {error.strerror or error}")


class BucketStore:
    """Objects of a bucket in S3, or in a store with its protocol (`AWS_ENDPOINT_URL_S3`)."""

    def __init__(self, location: str) -> None:
        parts = urlsplit(location)
        self.location = location
        self._bucket = parts.netloc
        self._prefix = f"{parts.path.strip('/')}/" if parts.path.strip("/") else ""
        self._s3 = boto3.client("s3")

    def create(self, name: str, body: IO[bytes]) -> bool:
        """As `ObjectStore`, with If-None-Match; a conflict with a request at the same time (409) is retried."""
        for _ in range(_CONFLICTS):
            body.seek(0)
            try:
                self._s3.put_object(Bucket=self._bucket, Key=self._prefix + name, Body=body, IfNoneMatch="*")
            except ClientError as error:
                code = error.response["Error"].get("Code")
                if code == _CONFLICT:
                    continue
                if code == _EXISTS:
                    return False
                raise self._failed(name, error) from error
            except BotoCoreError as error:
                raise self._failed(name, error) from error
            return True
        raise ArchiveError(f"{self.location}: {name}: requests at the same time were refused {_CONFLICTS} times")

    def read(self, name: str, first: int = 0, size: int | None = None) -> bytes:
        """As `ObjectStore`."""
        if size == 0:
            return b""
        wanted = f"bytes={first}" if first < 0 else f"bytes={first}-{'' if size is None else first + size - 1}"
        ranged = {} if first == 0 and size is None else {"Range": wanted}
        try:
            answer = self._s3.get_object(Bucket=self._bucket, Key=self._prefix + name, **ranged)
            found = bytes(answer["Body"].read())
        except ClientError as error:
            if error.response["Error"].get("Code") in _MISSING:
                raise NoSuchObject(f"{self.location}: there is no {name}") from None
            raise self._failed(name, error) from error
        except BotoCoreError as error:
            raise self._failed(name, error) from error
        return found if size is None else found[:size]

    def names(self, prefix: str) -> Iterator[Stored]:
        """As `ObjectStore`."""
        pages = self._s3.get_paginator("list_objects_v2")
        try:
            for page in pages.paginate(Bucket=self._bucket, Prefix=self._prefix + prefix):
                for one in page.get("Contents", ()):
                    yield Stored(str(one["Key"]).removeprefix(self._prefix), int(one["Size"]))
        except (ClientError, BotoCoreError) as error:
            raise self._failed(prefix, error) from error

    def delete(self, names: Iterable[str]) -> None:
        """As `ObjectStore`."""
        left = list(names)
        while left:
            some, left = left[:_DELETED_A_REQUEST], left[_DELETED_A_REQUEST:]
            keys = [{"Key": self._prefix + name} for name in some]
            try:
                answer = self._s3.delete_objects(Bucket=self._bucket, Delete={"Objects": keys, "Quiet": True})
            except (ClientError, BotoCoreError) as error:
                raise self._failed(some[0], error) from error
            for one in answer.get("Errors", ()):
                raise ArchiveError(f"{self.location}: {one.get('Key')}: {one.get('Code')}: {one.get('Message')}")

    def _failed(self, name: str, error: Any) -> ArchiveError:  # noqa: ANN401 -- of two classes without a common one
        return ArchiveError(f"{self.location}: {name}: {' '.join(str(error).split())}")

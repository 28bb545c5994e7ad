"""Reads and sets quotas of users, client ids and addresses (KIP-546)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from mirrorless.clusters.cluster_requests import NotThere, asked
from mirrorless.kafka_python.errors import ClusterAuthorizationFailedError, for_code
from mirrorless.kafka_python.messages import AlterClientQuotasRequest, DescribeClientQuotasRequest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mirrorless.kafka_python.admin import AdminRequests
    from mirrorless.settings import Cluster

_NOUNS: Final = {"user": "user", "client-id": "client id", "ip": "address"}
_WHAT: Final = "the quotas"
_ALTER: Final = "ALTER_CONFIGS"


@dataclass(frozen=True, slots=True, order=True)
class QuotaEntity:
    """What a quota is for: pairs of `user`, `client-id` or `ip`, and a name, which is empty for the default."""

    parts: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return " with ".join(
            f"{_NOUNS.get(kind, kind)} {name}" if name else f"every other {_NOUNS.get(kind, kind)}"
            for kind, name in self.parts
        )


Quotas = dict[QuotaEntity, dict[str, float]]


def quotas_of(cluster: Cluster) -> Quotas | NotThere:
    """Read all quotas in one request, by what they are for; raises `ClusterUnavailable`."""

    def ask(client: AdminRequests) -> Quotas:
        answer = client.ask_any_broker(DescribeClientQuotasRequest(components=[], strict=False))
        if answer.error_code:
            raise for_code(answer.error_code)
        return {_entity(one.entity): {value.key: value.value for value in one.values} for one in answer.entries or ()}

    return asked(cluster, ask, what=_WHAT, right="DESCRIBE_CONFIGS")


def set_quotas(cluster: Cluster, wanted: Sequence[tuple[QuotaEntity, Mapping[str, float]]]) -> list[str | None]:
    """Set quotas in one request; returns for each None, or the error. Other quotas of the same entity are unchanged.

    Raises `ClusterUnavailable`.
    """
    entry = AlterClientQuotasRequest.EntryData

    def ask(client: AdminRequests) -> list[str | None]:
        request = AlterClientQuotasRequest(
            entries=[
                entry(
                    entity=[
                        entry.EntityData(entity_type=kind, entity_name=name or None) for kind, name in entity.parts
                    ],
                    ops=[entry.OpData(key=key, value=value, remove=False) for key, value in values.items()],
                )
                for entity, values in wanted
            ],
            validate_only=False,
        )
        answer = client.ask_any_broker(request)
        errors = {_entity(one.entity): one for one in answer.entries}
        return [_error(errors[entity].error_code, errors[entity].error_message) for entity, _ in wanted]

    done = asked(cluster, ask, what=_WHAT, right=_ALTER)
    return [done.reason] * len(wanted) if isinstance(done, NotThere) else done


def _entity(parts: Iterable[Any]) -> QuotaEntity:
    return QuotaEntity(tuple(sorted((part.entity_type, part.entity_name or "") for part in parts)))


def _error(code: int, message: str | None) -> str | None:
    if not code:
        return None
    text = message or for_code(code).__name__
    return f"{text}; grant {_ALTER} on the cluster" if code == ClusterAuthorizationFailedError.errno else text

"""Reads ACLs, and adds and removes those of topics, in batches."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from confluent_kafka.admin import AclBinding, AclBindingFilter, ResourceType

from mirrorless.clusters.kafka_admin_client import admin_client
from mirrorless.clusters.msk import is_serverless
from mirrorless.errors import ClusterUnavailable
from mirrorless.kafka_python.admin import (
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    AdminRequests,
    ResourcePatternFilter,
)
from mirrorless.kafka_python.admin import ResourceType as TypeOfResource
from mirrorless.kafka_python.errors import (
    BrokerResponseError,
    ClusterAuthorizationFailedError,
    KafkaError,
    RetriableError,
    SecurityDisabledError,
    for_code,
)
from mirrorless.kafka_python.messages import DescribeAclsRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mirrorless.clusters.admin import Admin, Refusal
    from mirrorless.settings import Cluster


class AclResource(Enum):
    """Types of resources that ACLs are on."""

    TOPIC = TypeOfResource.TOPIC
    GROUP = TypeOfResource.GROUP
    TRANSACTIONAL_ID = TypeOfResource.TRANSACTIONAL_ID
    CLUSTER = TypeOfResource.CLUSTER

    @property
    def for_confluent(self) -> ResourceType:
        """The same in confluent-kafka, which names the cluster otherwise."""
        return ResourceType.BROKER if self is AclResource.CLUSTER else ResourceType[self.name]


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class Acl:
    """One ACL on topics. `pattern`, `operation` and `permission` are Kafka's words in upper case: LITERAL, READ.

    `topic` is a name, `*` for all of them if literal, or with PREFIXED what the names begin with; of other resources
    it is their name.
    """

    topic: str
    pattern: str
    principal: str
    host: str
    operation: str
    permission: str

    def __str__(self) -> str:
        where = "" if self.host == "*" else f" from {self.host}"
        prefixed = " (prefix)" if self.pattern == "PREFIXED" else ""
        return f"{self.permission} {self.operation} on {self.topic}{prefixed} to {self.principal}{where}"


@dataclass(frozen=True, slots=True)
class NoAcls:
    """A cluster whose ACLs cannot be read, and why; `lacks_right` if it has ACLs that the user may not describe."""

    reason: str
    lacks_right: bool = False


def topic_acls(cluster: Cluster) -> frozenset[Acl] | NoAcls:
    """Read all ACLs of topics; see `acls_of`."""
    return acls_of(cluster, AclResource.TOPIC)


def acls_of(cluster: Cluster, resource: AclResource) -> frozenset[Acl] | NoAcls:
    """Read all ACLs of a type of resource in one request; `topic` of each is the resource's name.

    No authorizer, no right to describe ACLs, and any other refusal of the cluster is a result; raises
    `ClusterUnavailable` if there is none. MSK Serverless is not asked: its answer may be that a right is missing.
    """
    if is_serverless(cluster):
        return NoAcls(f"cluster {cluster.alias} is MSK Serverless, which has no ACLs")
    # Not with confluent-kafka: 2.16 returns an empty list for every refusal, as if the cluster had no ACLs.
    try:
        client = admin_client(cluster)
        try:
            found, _ = client.describe_acls(_any(resource))
        finally:
            client.close()
    except SecurityDisabledError:
        return NoAcls(f"cluster {cluster.alias} has no authorizer")
    except ClusterAuthorizationFailedError:
        reason = f"no right to see the ACLs of cluster {cluster.alias}; grant DESCRIBE on the cluster"
        return NoAcls(reason, lacks_right=True)
    except (KafkaError, OSError) as error:
        text = str(error) or type(error).__name__
        if isinstance(error, BrokerResponseError) and not isinstance(error, RetriableError):
            return NoAcls(f"cluster {cluster.alias}: {text}")
        raise ClusterUnavailable(text, cluster=cluster.alias) from error
    except ValueError as error:  # a number that the library's enums do not have
        return NoAcls(f"cluster {cluster.alias} has an ACL of an unsupported type: {error}")
    return frozenset(
        Acl(
            topic=one.resource_pattern.resource_name,
            pattern=one.resource_pattern.pattern_type.name,
            principal=one.principal,
            host=one.host,
            operation=one.operation.name,
            permission=one.permission_type.name,
        )
        for one in found
    )


def acls_seen_by(client: AdminRequests, node: int) -> frozenset[tuple[str, str, str, str]]:
    """Return the literal ACLs of topics that one broker knows: topic, principal, operation and permission.

    A change reaches brokers one after the other. Raises kafka-python's errors.
    """
    request = DescribeAclsRequest(
        min_version=1,
        resource_type_filter=TypeOfResource.TOPIC,
        resource_name_filter=None,
        pattern_type_filter=ACLResourcePatternType.LITERAL,
        principal_filter=None,
        host_filter=None,
        operation=ACLOperation.ANY,
        permission_type=ACLPermissionType.ANY,
    )
    answer = client.ask_broker(node, request)
    if answer.error_code:
        raise for_code(answer.error_code)
    return frozenset(
        (
            resource.resource_name,
            acl.principal,
            ACLOperation(acl.operation).name,
            ACLPermissionType(acl.permission_type).name,
        )
        for resource in answer.resources
        for acl in resource.acls
    )


def _any(resource: AclResource) -> ACLFilter:
    return ACLFilter(
        principal=None,
        host=None,
        operation=ACLOperation.ANY,
        permission_type=ACLPermissionType.ANY,
        resource_pattern=ResourcePatternFilter(resource.value, None, ACLResourcePatternType.ANY),
    )


def create_acls(
    admin: Admin, acls: Sequence[Acl], resource: AclResource = AclResource.TOPIC
) -> dict[Acl, Refusal | None]:
    """Add ACLs in one request; returns for each None, or the error. An ACL that exists already is no error."""
    wanted = {_binding(acl, resource): acl for acl in acls}
    answers = admin.client.create_acls(list(wanted)) if wanted else {}
    return {wanted[binding]: admin.refusal(future) for binding, future in answers.items()}


def delete_acls(admin: Admin, acls: Sequence[Acl]) -> dict[Acl, Refusal | None]:
    """Remove exactly these ACLs of topics in one request; returns for each None, or the error.

    A missing ACL is no error.
    """
    wanted = {_exactly(acl): acl for acl in acls}
    answers = admin.client.delete_acls(list(wanted)) if wanted else {}
    return {wanted[one]: admin.refusal(future) for one, future in answers.items()}


def _binding(acl: Acl, resource: AclResource) -> AclBinding:
    return AclBinding(
        resource.for_confluent, acl.topic, acl.pattern, acl.principal, acl.host, acl.operation, acl.permission
    )


def _exactly(acl: Acl) -> AclBindingFilter:
    return AclBindingFilter(
        ResourceType.TOPIC, acl.topic, acl.pattern, acl.principal, acl.host, acl.operation, acl.permission
    )

"""Requests and responses of kafka-python that are used as they are."""

from __future__ import annotations

from kafka.protocol.admin.acl import DescribeAclsRequest
from kafka.protocol.admin.client_quotas import AlterClientQuotasRequest, DescribeClientQuotasRequest
from kafka.protocol.admin.cluster import DescribeClusterRequest, DescribeQuorumRequest
from kafka.protocol.admin.configs import DescribeConfigsRequest, IncrementalAlterConfigsRequest
from kafka.protocol.admin.groups import DescribeGroupsRequest
from kafka.protocol.admin.topics import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteRecordsRequest,
    DeleteTopicsRequest,
)
from kafka.protocol.admin.transactions import DescribeProducersRequest
from kafka.protocol.admin.users import DescribeUserScramCredentialsRequest
from kafka.protocol.consumer.fetch import FetchRequest, FetchResponse
from kafka.protocol.consumer.group import HeartbeatRequest
from kafka.protocol.consumer.offsets import ListOffsetsRequest
from kafka.protocol.metadata.metadata import MetadataRequest
from kafka.protocol.producer.produce import ProduceRequest, ProduceResponse
from kafka.protocol.producer.transaction import WriteTxnMarkersRequest

__all__ = [
    "AlterClientQuotasRequest",
    "CreatePartitionsRequest",
    "CreateTopicsRequest",
    "DeleteRecordsRequest",
    "DeleteTopicsRequest",
    "DescribeAclsRequest",
    "DescribeClientQuotasRequest",
    "DescribeClusterRequest",
    "DescribeConfigsRequest",
    "DescribeGroupsRequest",
    "DescribeProducersRequest",
    "DescribeQuorumRequest",
    "DescribeUserScramCredentialsRequest",
    "FetchRequest",
    "FetchResponse",
    "HeartbeatRequest",
    "IncrementalAlterConfigsRequest",
    "ListOffsetsRequest",
    "MetadataRequest",
    "ProduceRequest",
    "ProduceResponse",
    "WriteTxnMarkersRequest",
]

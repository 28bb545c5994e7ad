"""Replicates Kafka clusters as MirrorMaker 2 does, without the Connect cluster.

Public, and stable within a minor version, are the command line and the names in `__all__` of these modules:

- `mirrorless.settings`: `load` reads a configuration file into `Settings`, `Flow` and `Cluster`.
- `mirrorless.client`: `MirrorClient` asks a cluster who is upstream and where a consumer group continues.
- `mirrorless.policy`: `ReplicationPolicy` and the two built-in policies, to derive a custom one from.
- `mirrorless.filters`: the protocols of filters and the built-in ones, to derive a custom one from.
- `mirrorless.errors`: `MirrorlessError` and everything that derives from it.

Everything else may change in any release.
"""

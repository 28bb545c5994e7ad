"""Closed record batches in object storage, and a Kafka cluster that is served from them.

An archive is a cluster of another kind. `writer` copies the batches of a flow's source into objects, `served` answers
Kafka's protocol from these objects as they were at some time, so that everything that reads a cluster reads an archive.
"""

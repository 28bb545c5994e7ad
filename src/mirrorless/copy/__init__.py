"""The copier: fetch from the source, compare-and-append to the target, progress.

Its packages, each of which imports only from those before it: `flow` (both ends of a
flow), `partition` (one partition's state), `resume` (where a partition continues), `offset_syncs`, `slot` (one event
loop over the partitions of a lease), `planning` (leases from a snapshot of both clusters), `engines` (what runs them).
"""

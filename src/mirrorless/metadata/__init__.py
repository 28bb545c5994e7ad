"""Syncs topics, configs and ACLs: a snapshot of both clusters, a plan with reasons, and one module that executes it."""

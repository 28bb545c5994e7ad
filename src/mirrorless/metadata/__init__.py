"""Keeps topics in step: a snapshot of both clusters, a plan of what to change and why, one place that changes it."""

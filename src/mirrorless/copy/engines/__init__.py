"""Runs leases, and communicates with their slots while they run."""

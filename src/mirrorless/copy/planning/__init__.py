"""Leases: a snapshot of both clusters and the progress goes in; rows assigned to slots come out."""

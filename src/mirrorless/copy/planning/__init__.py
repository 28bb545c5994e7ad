"""Leases: a snapshot of both clusters and the progress goes in; rows dealt to slots come out."""

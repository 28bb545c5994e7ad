"""Publishes metrics, from the reports of leases to CloudWatch and Prometheus."""

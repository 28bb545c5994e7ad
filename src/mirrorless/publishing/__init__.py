"""Metrics on their way out: what a lease's reports come to, for CloudWatch and for Prometheus."""

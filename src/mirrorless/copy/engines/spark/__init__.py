"""Runs leases on Spark: a streaming source of leases, a query over it, and the job that keeps the query running."""

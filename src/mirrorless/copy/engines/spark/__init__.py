"""Leases run by Spark: a streaming source of leases, a query over it, and the job that keeps the query going."""

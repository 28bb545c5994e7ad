"""The state of operations (switchover, failover, failback) in `mm2-operations.internal`."""

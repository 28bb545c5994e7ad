"""What runs leases, and talks with their slots while they run."""

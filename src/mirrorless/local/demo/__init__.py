"""What `mirrorless demo` is made of: a workload, and a comparison of both sides record by record."""

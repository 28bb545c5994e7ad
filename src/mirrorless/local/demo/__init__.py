"""Parts of `mirrorless demo`: a workload, and a comparison of both sides record by record."""

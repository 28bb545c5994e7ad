"""One event loop over the partitions of a lease: rows go in; appended batches, progress and reports come out."""

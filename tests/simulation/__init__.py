"""The product's own code in a simulated world: one seed is one schedule of processes, clusters and faults."""

"""One partition of a flow: a row of a lease goes in, its state and counters change, a report comes out."""

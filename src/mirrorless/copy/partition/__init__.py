"""One partition of a flow: a lease's row goes in; its state and counters change; a report comes out."""

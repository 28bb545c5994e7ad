"""Moving applications between clusters; so far the drill, which rehearses it without stopping anything."""

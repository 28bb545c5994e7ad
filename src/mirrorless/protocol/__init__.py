"""Kafka's protocol as far as whole batches go: raw fetch and append, on connections and a loop made for them."""

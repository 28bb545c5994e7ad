"""Runs Mirrorless on one machine: Java, Kafka's jars, embedded brokers."""

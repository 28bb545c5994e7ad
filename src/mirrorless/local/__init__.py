"""Everything that runs Mirrorless on one machine: Java, Kafka's jars, embedded brokers."""

"""Access to Kafka clusters: client settings for both client libraries, then one module per noun."""

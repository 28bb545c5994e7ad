"""The edge to Kafka: client settings for both libraries, then one noun a file."""

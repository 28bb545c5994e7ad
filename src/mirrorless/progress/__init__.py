"""The progress topic: records in Kafka Connect's format go in and come out; nothing here reads or writes batches."""

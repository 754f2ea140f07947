"""Values in a schema registry's wire format: the client, the frame, Avro and JSON Schema."""

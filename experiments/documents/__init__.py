"""How a document that a user wrote becomes a value: files, YAML and JSON, their limits, and the fields of a spec."""

"""The result tables: their schemas, and how they are read and checked."""

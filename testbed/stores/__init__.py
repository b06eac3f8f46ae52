"""The stores of checkpoints and logs: a directory or S3. Objects are written whole or not at all, and sealed."""

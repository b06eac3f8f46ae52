"""Where checkpoints and logs survive: a directory or S3. Objects are written whole or not at all, and sealed."""

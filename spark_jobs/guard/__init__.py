"""Keeps other users from PySpark's own ports: one file, which PySpark loads without the rest of this project."""

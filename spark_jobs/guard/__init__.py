"""A file that runs without the rest of this project: see its docstring."""

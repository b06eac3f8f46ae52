"""What is run: the experiment spec, its examples, the errors that a user can cause, and how files are read safely.

The lowest layer: it imports nothing of the project, and every other package may import it.
"""

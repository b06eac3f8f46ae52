"""The experiment spec, its examples, and the errors that a user can cause; also how files are read and locked.

The lowest layer: it imports nothing of the project, and every other package may import it.
"""

"""The experiment spec, its examples, and the errors that a user can cause; also locks and waiting.

The lowest layer: it imports nothing of the project, and every other package may import it.
"""

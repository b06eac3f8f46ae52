"""The generated pages of docs/reference: made of the spec's models, the tables' schemas, the checks and the parsers.

`python -m aftershock.reference` writes them; a unit test compares the committed pages with what they are made of. May
import `experiments`, `results` and the rest of `aftershock`.
"""

"""Generates pages of docs/reference from the spec's models, the examples, the tables' schemas, the checks
and the parsers.

`python -m aftershock.reference` writes them, and a unit test finds committed pages that are out of date. May import
`experiments`, `results` and the rest of `aftershock`.
"""

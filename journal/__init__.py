"""Journals: append-only logs in which services write what happened, and which steps, pages and tables read.

`writer` appends entries, `reader` reads or follows them. May import `experiments` only.
"""

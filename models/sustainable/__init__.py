"""The highest rate that a query can sustain: when lag is bounded, and the search for the rate at which it no longer is.

`lag` judges one probe, `search` says which rate is next.
"""

"""The highest rate that a query can sustain: when lag is bounded, and the search for the rate at which it no longer is.

`lag` judges one probe, `service_rate` says how fast a busy query reads, and `search` which rate is next. `duration`
says how long all this takes.
"""

"""Journals: append-only logs in which services write what happened, and which steps, pages and tables read.

`event` defines what an event is, `events/` has the vocabulary of each journal, `codec` turns events into lines and
lines into events. `writer` appends events, `reader` reads or follows them. A program that only
writes needs no library except Python's own.
"""

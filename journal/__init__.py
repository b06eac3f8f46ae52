"""Journals: append-only logs in which services write what happened, and which steps, pages and tables read.

`event` defines what an event is, `events/` has the events of each journal, `codec` converts events to lines and back.
`writer` appends events, `reader` reads or follows them. A program that only writes needs only Python's standard
library.
"""

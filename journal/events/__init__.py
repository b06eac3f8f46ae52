"""The events of each journal, as frozen dataclasses with the names and fields that the file has.

A writer needs only Python's standard library. A field has a default if older runs do not have it. Each module ends with
its vocabulary: the events that a reader of the whole journal understands.
"""

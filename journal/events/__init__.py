"""The events of each journal, as frozen dataclasses with the names and fields that the file has.

A writer needs no library but Python's own. A field has a default if older runs do not have it. Each module ends with
its vocabulary, which is what a reader of the whole journal understands.
"""

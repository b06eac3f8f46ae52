"""The run store: one directory for each run, its JSON documents, retention and export."""

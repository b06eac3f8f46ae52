"""The run store: directories of runs, their documents, their index, and how they are kept and exported."""

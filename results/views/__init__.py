"""Presents results: charts, plots, reports, terminal output, JSON documents, lists, and runs side by side."""

"""The word count of the `utilization` paper: words counted in sliding windows, chained to a depth."""

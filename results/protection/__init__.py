"""What protection against failures costs, what it saves, and at which failure rate which protection wins.

Reads finished runs through the run store and the index.
"""

"""Compares protections against failures: what each costs and saves, and which wins at which failure rate.

Reads finished runs through the run store and the index.
"""

"""The command line: one module for each command. `add` declares its arguments, the rest carries it out.

A command imports what it needs when it runs, so that a call waits for no other imports.
"""

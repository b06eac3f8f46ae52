"""The command line: one module for each command. `add` declares its arguments, the rest carries it out.

A command imports what it needs when it runs. So a call does not wait for imports that it does not use.
"""

"""The commands of the command line, a module each: `add` declares the words of a call, the rest carries it out.

What a command needs is imported when it runs, so that a call does not wait for what it does not use.
"""

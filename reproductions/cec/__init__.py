"""`cec`, section IV: an operator with an output log, alone in this process."""

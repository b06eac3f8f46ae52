"""A slot: a Spark task from the beginning of a run to its end (`slot`), whose `hosting` executes its partitions.

`hosting` joins the parts: `hosted` (the partitions, and whose turn it is), `exchange` (frames and credit), `inputs`
and `outputs` (of sources and sinks), `storing`, `restoring` and `spilling` (checkpoints and retained output),
`catching_up`, `timers`, `long_lived` (what Python's garbage collector need not search), and `reporting` (to the
coordinator). `check_budget` and `log_costs` serve operators that keep an output log.
"""

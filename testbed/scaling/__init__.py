"""How the protocols behave on more workers than a machine holds: a discrete-event simulation with measured costs.

`measure.costs` times the testbed's own parts on this machine, `cluster.Cluster` runs the protocols' own classes on
workers whose time is virtual, and `study.study` makes the table. Whatever comes from here is simulated, and says so.
"""

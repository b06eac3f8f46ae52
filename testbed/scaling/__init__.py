"""The protocols on more workers than one machine can hold: a discrete-event simulation with measured costs.

`measure.costs` times the testbed's own parts on this machine, `cluster.Cluster` runs the protocols' own classes on
workers whose time is virtual, and `study.study` makes the table. All results of this package are marked as simulated.
"""

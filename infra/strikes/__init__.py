"""What can be done to a host, each as a strike: made ready ahead, carried out when due, proved, and undone.

They act on processes, packets and files of the machine that they run on: in the driver's own process, or in the agent
of a host that is reached from afar. Only `experiments.fault_kinds` and modules of `infra` that need
the standard library alone may be imported here: an agent starts fast.
"""

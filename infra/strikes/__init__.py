"""Strikes: what a fault does to a host. A strike is prepared in advance, carried out when due, proved, and undone.

Strikes act on processes, packets and files of the machine on which they run: in the driver's process, or in the agent
of a remote host. Agents must start fast. So modules here may import only `experiments.fault_kinds`, and modules of
`infra` that need nothing but the standard library.
"""

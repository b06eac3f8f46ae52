"""The specs of the workloads: what a run can execute."""

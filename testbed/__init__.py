"""The protocol testbed: a small streaming runtime whose fault tolerance is a plug-in.

    core/        the two state machines, partition and coordinator, and their parts: no side effects
    operators/   the operators of dataflows, with their state: no side effects
    protocols/   how a dataflow tolerates faults: one class each, behind the interface of `core.protocol`
    recovery/    which partitions roll back after a failure: one strategy each, behind the interface of `core.recovery`
    output_log/  an operator's state saved window by window, inside its persisted output
    stores/      where checkpoints and logs are kept
    runtime/     carries out the effects of the state machines: sockets, threads, Kafka
    simulation/  runs the state machines in one thread, in any order that channels allow, with crashes anywhere
    scaling/     simulates clusters of many workers with measured costs
    queries/     the workloads as dataflows

See docs/reference/testbed.md.
"""

"""What a coordinator orders its partitions to do."""

from testbed.core.effects import Delete, Order


def orders_of(coordinator, *kinds):
    """Partition and message of each order since the last call, of these kinds of message or of all."""
    return [(partition, message) for _, partition, message in addressed_orders_of(coordinator, *kinds)]


def addressed_orders_of(coordinator, *kinds):
    """The same, with the worker at which the partition is."""
    orders = [each for each in coordinator.take_effects() if isinstance(each, Order)]
    return [(each.worker, each.partition, each.message) for each in orders if isinstance(each.message, kinds or object)]


def deleted(coordinator):
    """The objects that the coordinator has had deleted since its effects were last taken."""
    return {key for each in coordinator.take_effects() if isinstance(each, Delete) for key in each.keys}

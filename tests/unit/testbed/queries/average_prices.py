"""Small dataflows of average prices, their input, and their exact output by the definition, purchase by purchase."""

from collections import Counter, defaultdict

from experiments.workloads.cec_prices import CecPricesSpec
from testbed.core.dataflow.layout import lay_out
from testbed.operators import Delivery
from testbed.queries.cec_prices import cec_prices
from workloads.cec_prices.input import prices
from workloads.schedule import Schedule

FEW = CecPricesSpec(items=2, window_records=1, stream_seed=3)
SLOW = CecPricesSpec(items=2, window_records=50, stream_seed=3)
MANY = CecPricesSpec(items=40, window_records=4, least_price=300, stream_seed=3)
RARE = CecPricesSpec(items=60, window_records=2, stream_seed=3)
SPECS = {"fast": FEW, "slow": SLOW, "filtered": MANY, "rare": RARE}


def inputs(spec, events, rate, read, sources=1, start_ns=0):
    """Position p goes to partition p mod P, as in Kafka; each partition reads a fixed number at once."""
    made = prices(spec, Schedule(start_ns, rate, sources), 0, events)
    rows = [made.take(list(range(each, events, sources))) for each in range(sources)]
    return {"prices": [[each.slice(at, read) for at in range(0, each.num_rows, read)] for each in rows]}


def laid_out(spec, parallelism=1, delivery=Delivery.EXACTLY_ONCE):
    """The filter is an operator of its own."""
    return lay_out(cec_prices(spec, parallelism, delivery))


def exact(spec, given):
    """The rows that must come out: item, position and time of the purchase that closes the window, and the average."""
    purchases = sorted(
        (row["position"], row["item"], row["price"], row["at_ns"])
        for partition in given["prices"]
        for batch in partition
        for row in batch.to_pylist()
    )
    held, found = defaultdict(list), Counter()
    for position, item, price, at_ns in purchases:
        if price < spec.least_price:
            continue
        held[item].append(price)
        if len(held[item]) == spec.window_records:
            found[item, position, at_ns, sum(held.pop(item)) / spec.window_records] += 1
    return found

"""The example of figure 2 of `incremental`, reconstructed from its table of schedules: the figure is not available."""

from __future__ import annotations

from models.topology import Topology, parse_topology

FIGURE_2_FAILED = tuple(f"p{i}.0" for i in range(3, 13))
FIGURE_2_NODE_CAPACITY = 2.0  # partitions that a node can recover; each costs 1
FIGURE_2_QUERIES = {"Q1": "p9.0", "Q2": "p10.0", "Q3": "p11.0", "Q4": "p12.0"}

_FEEDS = {
    "p1": ("p3",),
    "p2": ("p4",),
    "p3": ("p5", "p6"),
    "p4": ("p6", "p10"),
    "p5": ("p7",),
    "p6": ("p8",),
    "p7": ("p9", "p10"),
    "p8": ("p11", "p12"),
}


def figure_2_topology() -> Topology:
    """Twelve partitions; p3 to p12 have failed, p9 to p12 are the output partitions of Q1 to Q4.

    What the table says, for equal costs and priorities: the operator-centric order is p3 ... p12. Q1 is complete with
    p3, p5, p7, p9, and Q2 then with p4, p10. Both fit a capacity of 4 at best one at a time and Q1 is taken, so Q2
    takes more than 4: it is {p3, p4, p5, p7, p10}. Q3 and Q4 are complete with p6, p8, p11, p12 in addition, neither
    with two of these, and not both for 4 without anything recovered (that would be worth more than Q1): they share
    p6 and p8, and need partitions of Q1 or Q2 as well. Here p6 consumes from p3 and p4. Failed partitions need
    sources that are alive, p1 and p2. No operator of a structured topology feeds just so; each partition is an
    operator by itself.
    """
    names = [f"p{i}" for i in range(1, 13)]
    streams = [(source, target) for source, targets in _FEEDS.items() for target in targets]
    return parse_topology(
        {
            "operators": [{"name": name, "parallelism": 1} for name in names],
            "streams": [{"from": up, "to": down, "partitioning": "one-to-one"} for up, down in streams],
        }
    )

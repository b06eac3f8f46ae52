"""`ppa`, the examples of section III and figure 14: what to replicate actively.

The figures are lost, and with them the rates of figure 2, the shape of figure 1, and the replication ratios and the
ranges of parallelism of figure 14: what the text allows is taken, and said here.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator

from models.fidelity import Scorer, worst_case
from models.replication import exact, greedy, structure_aware
from models.replication.mc_trees import count_mc_trees
from models.replication.parts import Kind
from models.replication.random_topologies import TopologySpec, generate
from models.topology import Inputs, Topology, parse_topology
from reproductions.comparison import (
    ROUNDING,
    by_algorithm,
    mean_never_below,
    never_above,
    plot_comparison,
    summarize,
)
from reproductions.reproduction import Check, Progress, Reproduction, Size, holds
from results.checks.rules import between, pairs_equal
from results.style import BLUE, ORANGE, WIDTH_IN

RATIOS = (0.1, 0.2, 0.4, 0.6, 0.8)  # replicated tasks / all tasks
TIME_LIMIT_S = 5.0  # for the exact planner, for each plan
OPTIMUM, STRUCTURE_AWARE, GREEDY = "exact optimum", "structure-aware", "greedy"
AS_PRINTED = "structure-aware, as printed"
TOPOLOGIES = Size("topologies for each setting", default=100, paper=100, least=2)
SEED = 1
TREES, LOSS = "MC-trees", "information loss"
EXAMPLES = {  # title and label of each quantity
    TREES: ("MC-trees of the example of figure 1", "trees"),
    LOSS: ("Loss at t31 when t22 fails (figure 2)", "lost share of the output of t31,\nthe one task of O3"),
}
PANELS = {
    "a": {"uniform workloads": TopologySpec(zipf_exponent=0.0), "Zipf, s = .1": TopologySpec(zipf_exponent=0.1)},
    "b": {
        "parallelism 1 to 10": TopologySpec(parallelism=(1, 10)),
        "parallelism 10 to 20": TopologySpec(parallelism=(10, 20)),
    },
    "c": {"structured": TopologySpec(kind=Kind.STRUCTURED), "full": TopologySpec(kind=Kind.FULL)},
    "d": {"no joins": TopologySpec(join_share=0.0), "50 % joins": TopologySpec(join_share=0.5)},
}


def figure_1(inputs: Inputs) -> Topology:
    """Two sources of 4 tasks, one-to-one into O3, and a full stream into the 2 tasks of O4.

    Then t31 needs t11 or t21 (or both), and every task of O4 can end each of 4 x 2 (or 4) trees.
    """
    counts = {"O1": 4, "O2": 4, "O3": 4, "O4": 2}
    streams = [("O1", "O3", "one-to-one"), ("O2", "O3", "one-to-one"), ("O3", "O4", "full")]
    return _topology(counts, streams, inputs, {})


def figure_2(inputs: Inputs) -> Topology:
    """Two sources of 2 tasks that merge into t31, at rates that the text's 2/5 and 1/4 imply together.

    With t22 failed, 2/5 is its share of O2 and 1/4 its share of both: O1 and O2 are as 3 to 5, t21 and t22 as 3 to 2.
    """
    streams = [("O1", "O3", "merge"), ("O2", "O3", "merge")]
    return _topology({"O1": 2, "O2": 2, "O3": 1}, streams, inputs, {"O1": [1.0, 2.0], "O2": [3.0, 2.0]})


def _topology(counts: dict, streams: list, inputs: Inputs, rates: dict) -> Topology:
    operators = [{"name": name, "parallelism": count} for name, count in counts.items()]
    for operator in operators:
        operator |= {"output_rates": rates[operator["name"]]} if operator["name"] in rates else {}
        operator |= {"inputs": inputs.value} if operator["name"] == "O3" else {}
    links = [{"from": up, "to": down, "partitioning": kind} for up, down, kind in streams]
    return parse_topology({"operators": operators, "streams": links})


def examples(size: int, tell: Progress) -> pd.DataFrame:
    """Information loss of t31 when t22 fails, and the number of MC-trees, for both kinds of inputs of O3."""
    rows = []
    for inputs, printed_loss, printed_trees in ((Inputs.CORRELATED, 2 / 5, 8), (Inputs.INDEPENDENT, 1 / 4, 16)):
        example = figure_2(inputs)
        complete = Scorer(example).completeness(example.mask(["O2.1"]))
        loss = 1 - float(complete[example.mask(["O3.0"])][0])
        trees = sum(count_mc_trees(figure_1(inputs)).values())
        rows.append({"quantity": LOSS, "inputs": inputs.value, "value": loss, "printed": printed_loss})
        rows.append({"quantity": TREES, "inputs": inputs.value, "value": trees, "printed": printed_trees})
    return pd.DataFrame(rows)


def plot_examples(table: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(WIDTH_IN, 3.5), layout="constrained")
    panels = figure.subplots(1, 2)
    for axes, (quantity, (title, label)) in zip(panels, EXAMPLES.items(), strict=True):
        rows = table[table["quantity"] == quantity]
        places = np.arange(len(rows))
        axes.bar(places - 0.2, rows["value"], 0.4, color=BLUE, label="ours")
        axes.bar(places + 0.2, rows["printed"], 0.4, color=ORANGE, label="printed")
        axes.set_xticks(places, [f"{inputs} inputs of O3" for inputs in rows["inputs"]])
        axes.set(title=title, ylabel=label)
        axes.grid(visible=False, axis="x")
    panels[0].yaxis.set_major_locator(MultipleLocator(4))  # trees are whole
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=2)
    figure.get_layout_engine().set(wspace=0.08)
    return figure


def compare(panel: str, size: int, tell: Progress) -> pd.DataFrame:
    """Figure 14: output fidelity in the worst case by replication ratio; beyond the paper, the optimum beside it.

    `proved_share` is the share of topologies whose optimum was proved in the time limit; `upper_bound` (a mean too)
    is what no plan can exceed even for the others, and `least_room` the least by which a single plan stays below it.
    `below_greedy_share` is the share of single topologies on which structure-aware falls below greedy, whatever the
    means are; `nothing_as_printed_share` of those on which algorithm 5 gives up, as the budget is below the number of
    operators. Ours starts from the branches that fit.
    """
    rows, points = [], []
    for setting, spec in PANELS[panel].items():
        for number, seed in enumerate(np.random.SeedSequence(SEED).spawn(size)):
            tell(len(points) // len(RATIOS), len(PANELS[panel]) * size)
            topology = generate(np.random.default_rng(seed), spec)
            for ratio in RATIOS:
                facts = {"setting": setting, "share": ratio, "problem": number}
                budget = int(ratio * len(topology.tasks))
                found = _fidelities(topology, budget)
                rows.extend(facts | each for each in found)
                points.append({"setting": setting, "share": ratio} | _shares(found, budget < len(topology.operators)))
    at_each_point = pd.DataFrame(points).groupby(["setting", "share"]).mean()
    return summarize(rows).merge(at_each_point.reset_index(), on=["setting", "share"])


def _shares(found: list[dict[str, object]], gives_up: bool) -> dict[str, object]:
    """What is averaged over the topologies, of one of them."""
    value = {each["algorithm"]: each["value"] for each in found}
    below = value[STRUCTURE_AWARE] < value[GREEDY] - ROUNDING
    return {
        "upper_bound": found[0]["bound"],
        "below_greedy_share": below,
        "nothing_as_printed_share": gives_up,
    }


def _fidelities(topology: Topology, budget: int) -> list[dict[str, object]]:
    """The fidelity of each planner's plan, and the upper bound of any plan's; the optimum first."""
    best = exact.plan(topology, budget, TIME_LIMIT_S)
    scorer = Scorer(topology)
    plans = {
        OPTIMUM: best,
        STRUCTURE_AWARE: structure_aware.plan(topology, budget),
        GREEDY: greedy.plan(topology, budget),
        AS_PRINTED: structure_aware.plan_as_printed(topology, budget),
    }
    rows = [
        {
            "algorithm": name,
            "value": float(scorer.output_fidelity(worst_case(plan.replicated))),
            "bound": best.upper_bound,
        }
        for name, plan in plans.items()
    ]
    rows[0]["proved"] = best.optimal
    return rows


def _gap() -> Check:
    """How far from optimal is structure-aware? The paper could not tell: any share passes, more than all does not."""

    def ratios(table: pd.DataFrame) -> pd.DataFrame:
        means = by_algorithm(table)
        room = table[table["algorithm"] == STRUCTURE_AWARE].set_index(["setting", "share"])["least_room"]
        return pd.DataFrame({"share_of_optimum": means[STRUCTURE_AWARE] / means[OPTIMUM], "least_room": room}).dropna()

    return holds(
        "structure_aware.share_of_optimum",
        ratios,
        [between("share_of_optimum", 0, 1 + ROUNDING), between("least_room", -ROUNDING, None)],
        lambda frame: f"{frame['share_of_optimum'].min():.1%} to {frame['share_of_optimum'].max():.1%} of the optimum",
        "not above the optimum, on any single topology",
    )


def _better(name: str, better: str, worse: str) -> Check:
    """What the text says about the two settings of a panel: structure-aware reaches more in one, at every ratio."""

    def gains(table: pd.DataFrame) -> pd.DataFrame:
        means = by_algorithm(table)[STRUCTURE_AWARE]
        return pd.DataFrame({"gain": means.xs(better) - means.xs(worse)})

    return holds(
        name,
        gains,
        [between("gain", ROUNDING, None)],
        lambda frame: f"{(frame['gain'] > ROUNDING).sum()} of {len(frame)} ratios, by {frame['gain'].min():.4f} up",
        f"structure-aware higher at every ratio: {better}, against {worse}",
    )


def _panel(panel: str, what: str, trend: Check) -> Reproduction:
    return Reproduction(
        f"ppa/fig-14{panel}",
        f"output fidelity by replication ratio: {what}",
        compute=partial(compare, panel),
        plot=partial(plot_comparison, share="replicated tasks / all tasks", value="output fidelity in the worst case"),
        checks=(
            mean_never_below("structure_aware.not_below_greedy", STRUCTURE_AWARE, (GREEDY,), "no mean below greedy's"),
            _gap(),
            never_above("optimum.bounds_all", "on no single topology a plan above the proved upper bound"),
            trend,
        ),
        size=TOPOLOGIES,
    )


REPRODUCTIONS = (
    Reproduction(
        "ppa/examples",
        "information loss and MC-trees of the two examples",
        compute=examples,
        plot=plot_examples,
        checks=(
            holds(
                "examples.as_printed",
                lambda table: table.round({"value": 12}),
                [pairs_equal("value", "printed")],
                lambda frame: ", ".join(f"{value:g}" for value in frame["value"]),
                "0.4, 8, 0.25, 16",
            ),
        ),
    ),
    _panel("a", "skew of the workloads", _better("skew.helps", "Zipf, s = .1", "uniform workloads")),
    _panel("b", "parallelism", _better("parallelism.helps", "parallelism 10 to 20", "parallelism 1 to 10")),
    _panel("c", "partitioning", _better("structure.helps", "structured", "full")),
    _panel("d", "joins", _better("joins.hurt", "no joins", "50 % joins")),
)

"""`ppa`, the examples of section III and figure 14: what to replicate actively.

The figures are lost, and with them the rates of figure 2, the shape of figure 1, and the replication ratios and the
ranges of parallelism of figure 14: what the text allows is taken, and said here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MultipleLocator

from models.fidelity import Scorer, worst_case
from models.replication import exact, greedy, structure_aware
from models.replication.mc_trees import count_mc_trees
from models.replication.parts import PartKind
from models.replication.plan import ReplicationPlan
from models.replication.random_topologies import TopologySpec, generate
from models.topology import InputCorrelation, Topology, parse_topology
from reproductions.comparison import (
    ROUNDING,
    all_with_everything,
    better_setting,
    by_algorithm,
    mean_above,
    never_above,
    often_optimal,
    plot_comparison,
    scarce,
    summarize,
)
from reproductions.plants import InCode, Plant, put
from reproductions.reproduction import Progress, Reproduction, ReproductionCheck, Size, holds
from results.checks.rules import between, pairs_equal
from results.views.style import BLUE, ORANGE, WIDTH_IN

RATIOS = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0)  # replicated tasks / all tasks
TIME_LIMIT_S = 5.0  # for the exact planner, for each plan
OPTIMUM, STRUCTURE_AWARE, GREEDY = "exact optimum", "structure-aware", "greedy"
AS_PRINTED = "structure-aware, as printed"
STRUCTURED, FULL = "structured", "full"
TOPOLOGIES = Size("topologies for each setting", default=100, paper=100, least=2)
SEED = 1
AT_TIMES = 0.1
TREES, LOSS = "MC-trees", "information loss"
OTHER_TREES, OTHER_LOSS = "MC-trees of other shapes", "information loss at other rates"
Rates = dict[str, list[float]]
# With t22 failed, 2/5 is its share of O2 and 1/4 its share of both: O1 and O2 are as 3 to 5, t21 and t22 as 3 to 2. So
# the two losses give the rates, and nothing is left that they could be checked by: the other rates are for that.
FIGURE_2_RATES: Rates = {"O1": [1.0, 2.0], "O2": [3.0, 2.0]}
OTHER_RATES = 20
OTHER_SHAPES = ((2, 1), (2, 3), (3, 2))  # tasks of O1, O2 and O3, tasks of O4
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
    "c": {STRUCTURED: TopologySpec(kind=PartKind.STRUCTURED), FULL: TopologySpec(kind=PartKind.FULL)},
    "d": {"no joins": TopologySpec(join_share=0.0), "50 % joins": TopologySpec(join_share=0.5)},
}


def figure_1(inputs: InputCorrelation, width: int = 4, ends: int = 2) -> Topology:
    """Two sources of `width` tasks, one-to-one into O3, and a full stream into the tasks of O4, `ends` of them.

    So t31 needs t11 or t21 (or both), and every task of O4 can end each of `width` x 2 (or `width`) trees. The text
    names these tasks and the counts of trees; 4 and 2 are chosen to give them.
    """
    counts = {"O1": width, "O2": width, "O3": width, "O4": ends}
    streams = [("O1", "O3", "one-to-one"), ("O2", "O3", "one-to-one"), ("O3", "O4", "full")]
    return _topology(counts, streams, inputs, {})


def figure_2(inputs: InputCorrelation, rates: Rates) -> Topology:
    """Two sources of 2 tasks that merge into t31."""
    streams = [("O1", "O3", "merge"), ("O2", "O3", "merge")]
    return _topology({"O1": 2, "O2": 2, "O3": 1}, streams, inputs, rates)


def _topology(
    counts: dict[str, int], streams: list[tuple[str, str, str]], inputs: InputCorrelation, rates: Rates
) -> Topology:
    operators: list[dict[str, Any]] = [{"name": name, "parallelism": count} for name, count in counts.items()]
    for operator in operators:
        operator |= {"output_rates": rates[operator["name"]]} if operator["name"] in rates else {}
        operator |= {"inputs": inputs.value} if operator["name"] == "O3" else {}
    links = [{"from": up, "to": down, "partitioning": kind} for up, down, kind in streams]
    return parse_topology({"operators": operators, "streams": links})


def examples(size: int, tell: Progress) -> pd.DataFrame:
    """Both examples, for both kinds of inputs of O3, and others like them, of which nothing is printed.

    `derived` is what the text says, computed without the models: its formulas of the loss, definition 1 of MC-trees.
    """
    rows = []
    for inputs, loss, trees in ((InputCorrelation.CORRELATED, 2 / 5, 8), (InputCorrelation.INDEPENDENT, 1 / 4, 16)):
        rows.append(_loss(LOSS, inputs, FIGURE_2_RATES, ["O2.1"]) | {"printed": loss})
        rows.append(_trees(TREES, figure_1(inputs), inputs) | {"printed": trees})
        noise = np.random.default_rng(SEED)
        for _ in range(OTHER_RATES):
            rates = {name: noise.uniform(0.1, 10.0, 2).tolist() for name in ("O1", "O2")}
            rows.append(_loss(OTHER_LOSS, inputs, rates, ["O1.0", "O2.1"]))
        rows.extend(_trees(OTHER_TREES, figure_1(inputs, *shape), inputs) for shape in OTHER_SHAPES)
    return pd.DataFrame(rows)


def _loss(quantity: str, inputs: InputCorrelation, rates: Rates, failed: list[str]) -> dict[str, object]:
    """What t31 loses, by the model and by the formulas of section III-A."""
    topology = figure_2(inputs, rates)
    complete = Scorer(topology).completeness(topology.mask(failed))
    value = 1 - float(complete[topology.mask(["O3.0"])][0])
    sums = {name: sum(each) for name, each in rates.items()}
    lost = {name: sum(r for i, r in enumerate(each) if f"{name}.{i}" in failed) for name, each in rates.items()}
    if inputs is InputCorrelation.CORRELATED:
        derived = 1 - (1 - lost["O1"] / sums["O1"]) * (1 - lost["O2"] / sums["O2"])
    else:
        derived = sum(lost.values()) / sum(sums.values())
    return {"quantity": quantity, "inputs": inputs.value, "value": value, "derived": derived}


def _trees(quantity: str, topology: Topology, inputs: InputCorrelation) -> dict[str, object]:
    """The number of MC-trees, counted by the model and by definition 1."""
    value = sum(count_mc_trees(topology).values())
    return {"quantity": quantity, "inputs": inputs.value, "value": value, "derived": trees_by_definition(topology)}


def trees_by_definition(topology: Topology) -> int:
    """Sets of tasks that give output when only they are alive, and none without any one of them; all sets are tried."""
    tasks = len(topology.tasks)
    sets, places = np.arange(2**tasks), np.arange(tasks)
    alive = (sets[:, None] >> places & 1).astype(bool)
    works = Scorer(topology).output_fidelity(~alive) > 0
    without = works[sets[:, None] ^ (1 << places)]
    return int((works & ~(without & alive).any(axis=1)).sum())


def plot_examples(table: pd.DataFrame) -> Figure:
    """Our values beside the printed ones: a panel a quantity, a pair of bars for each kind of inputs."""
    figure = Figure(figsize=(WIDTH_IN, 3.5), layout=ConstrainedLayoutEngine(wspace=0.08))
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
    return figure


def compare(panel: str, size: int, tell: Progress) -> pd.DataFrame:
    """Figure 14: output fidelity in the worst case by replication ratio; beyond the paper, the optimum beside it.

    `proved_share` is the share of topologies whose optimum was proved in the time limit; `upper_bound` (a mean too)
    is what no plan can exceed even for the others, and `least_room` the least by which a single plan stays below it.
    `below_greedy_share` is the share of single topologies on which structure-aware falls below greedy, whatever the
    means are; `nothing_as_printed_share` of those on which algorithm 5 gives up, as the budget is below the number of
    operators. Ours starts from the branches that fit.
    """
    rows: list[dict[str, object]] = []
    points: list[dict[str, object]] = []
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


def _shares(found: list[dict[str, Any]], gives_up: bool) -> dict[str, object]:
    """What is averaged over the topologies, of one of them."""
    value = {each["algorithm"]: each["value"] for each in found}
    below = value[STRUCTURE_AWARE] < value[GREEDY] - ROUNDING
    return {
        "upper_bound": found[0]["bound"],
        "below_greedy_share": below,
        "nothing_as_printed_share": gives_up,
    }


def _fidelities(topology: Topology, budget: int) -> list[dict[str, Any]]:
    """The fidelity of each planner's plan, and the upper bound of any plan's; the optimum first."""
    best = exact.plan(topology, budget, TIME_LIMIT_S)
    scorer = Scorer(topology)
    plans: dict[str, exact.ExactPlan | ReplicationPlan] = {
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


def _reaches(algorithm: str, factor: float) -> Plant:
    """Plans of an algorithm that reach so many times the fidelity."""

    def change(sound: Callable[..., list[dict[str, Any]]]) -> Callable[..., list[dict[str, Any]]]:
        def wrong(topology: Topology, budget: int) -> list[dict[str, Any]]:
            found = sound(topology, budget)
            return [
                each | {"value": each["value"] * (factor if each["algorithm"] == algorithm else 1)} for each in found
            ]

        return wrong

    return InCode(f"{algorithm} x {factor:g}", "reproductions.ppa.plans:_fidelities", change)


JOINS_AS_UNIONS = InCode(
    "a join loses what a union does",
    "models.fidelity:Scorer._propagate",
    lambda sound: lambda self, failed, kind: sound(self, failed, lambda operator: InputCorrelation.INDEPENDENT),
)


def _twentieth_left_out(
    sound: Callable[[Topology, int], ReplicationPlan],
) -> Callable[[Topology, int], ReplicationPlan]:
    """A planner that forgets the first of every twenty tasks of its plan."""

    def wrong(topology: Topology, budget: int) -> ReplicationPlan:
        plan = sound(topology, budget)
        replicated = plan.replicated.copy()
        replicated[np.flatnonzero(replicated)[::20]] = False
        return plan._replace(replicated=replicated)

    return wrong


FORGETFUL = InCode(
    "structure-aware without one task in twenty", "models.replication.structure_aware:plan", _twentieth_left_out
)
AT_ONCE = "algorithm 5 returns the empty plan where the budget is below the number of operators"
PLANNERS = (OPTIMUM, STRUCTURE_AWARE, GREEDY, AS_PRINTED)
COMPARED = (
    mean_above(
        "structure_aware.above_greedy",
        STRUCTURE_AWARE,
        GREEDY,
        OPTIMUM,
        "every mean above greedy's",
        put("structure-aware := greedy", "models.replication.structure_aware:plan", greedy.plan),
    ),
    mean_above(
        "as_printed.above_greedy",
        AS_PRINTED,
        GREEDY,
        OPTIMUM,
        "every mean of algorithm 5 as printed above greedy's",
        put(
            "algorithm 5 with ours below",
            "models.replication.structure_aware:plan_as_printed",
            structure_aware.plan,
        ),
        fails=AT_ONCE,
    ),
    often_optimal(
        "structure_aware.optimal_at_times",
        STRUCTURE_AWARE,
        AT_TIMES,
        f"the optimum itself on at least {AT_TIMES:.0%} of all problems",
        _reaches(STRUCTURE_AWARE, 0.95),
    ),
    all_with_everything("budget.all", PLANNERS, "with every task replicated each algorithm reaches 1", FORGETFUL),
    never_above(
        "optimum.bounds_all",
        "on no single topology a plan above the proved upper bound",
        _reaches(STRUCTURE_AWARE, 1.05),
    ),
)
EXAMPLE_CHECKS = (
    holds(
        "examples.as_printed",
        lambda table: table.dropna(subset="printed").round({"value": 12}),
        [pairs_equal("value", "printed")],
        lambda frame: ", ".join(f"{value:g}" for value in frame["value"]),
        "0.4, 8, 0.25, 16, from which rates and numbers of tasks are chosen, as the figures are lost",
        JOINS_AS_UNIONS,
    ),
    holds(
        "losses.as_the_text_has_them",
        lambda table: _derived(table, LOSS, OTHER_LOSS),
        [between("difference", -ROUNDING, ROUNDING)],
        lambda frame: f"{len(frame)} losses, at most {frame['difference'].abs().max():.1g} off",
        f"the formulas of section III-A, at {OTHER_RATES} other rates too",
        JOINS_AS_UNIONS,
    ),
    holds(
        "trees.as_defined",
        lambda table: _derived(table, TREES, OTHER_TREES),
        [between("difference", 0, 0)],
        lambda frame: ", ".join(f"{value:g}" for value in frame["value"]),
        "as many minimal sets of tasks as are found by trying all sets, for other numbers of tasks too",
        put("joins counted as unions", "models.replication.mc_trees:prod", sum),
    ),
)


def _derived(table: pd.DataFrame, *quantities: str) -> pd.DataFrame:
    rows = table[table["quantity"].isin(quantities)]
    return rows.assign(difference=rows["value"] - rows["derived"])


def _drawn_alike(panel: str, better: str, worse: str) -> Plant:
    same = dict.fromkeys(PANELS[panel], PANELS[panel][better])
    return InCode(f"{worse} drawn as {better}", "reproductions.ppa.plans:PANELS", lambda all_: all_ | {panel: same})


def _ahead_of_greedy(table: pd.DataFrame) -> pd.DataFrame:
    """How far structure-aware is above greedy, on average over the ratios, and how much less so on full topologies."""
    means = by_algorithm(scarce(table))
    ahead = (means[STRUCTURE_AWARE] - means[GREEDY]).groupby("setting").mean()
    found = {each: [ahead[each]] for each in (STRUCTURED, FULL)}
    return pd.DataFrame(found | {"nearer": [ahead[STRUCTURED] - ahead[FULL]]})


NEARER_ON_FULL = holds(
    "full.nearer_to_greedy",
    _ahead_of_greedy,
    [between("nearer", ROUNDING, None)],
    lambda frame: f"{frame[FULL].iat[0]:.3f} above greedy on full ones, {frame[STRUCTURED].iat[0]:.3f} on structured",
    "structure-aware is nearer to greedy on full topologies, on average over the ratios (printed: close there)",
    _drawn_alike("c", STRUCTURED, FULL),
)


def _panel(panel: str, what: str, better: str, worse: str, trend: str, *more: ReproductionCheck) -> Reproduction:
    return Reproduction(
        f"ppa/fig-14{panel}",
        f"output fidelity by replication ratio: {what}",
        compute=partial(compare, panel),
        plot=partial(plot_comparison, share="replicated tasks / all tasks", value="output fidelity in the worst case"),
        checks=(
            *COMPARED,
            better_setting(trend, STRUCTURE_AWARE, better, worse, _drawn_alike(panel, better, worse)),
            *more,
        ),
        size=TOPOLOGIES,
    )


REPRODUCTIONS = (
    Reproduction(
        "ppa/examples",
        "information loss and MC-trees of the two examples",
        compute=examples,
        plot=plot_examples,
        checks=EXAMPLE_CHECKS,
    ),
    _panel("a", "skew of the workloads", "Zipf, s = .1", "uniform workloads", "skew.helps"),
    _panel("b", "parallelism", "parallelism 10 to 20", "parallelism 1 to 10", "parallelism.helps"),
    _panel("c", "partitioning", STRUCTURED, FULL, "structure.helps", NEARER_ON_FULL),
    _panel("d", "joins", "no joins", "50 % joins", "joins.hurt"),
)

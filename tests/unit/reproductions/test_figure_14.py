"""Figure 14: structure-aware as printed beside ours, and how often it gives up."""

from __future__ import annotations

import pytest

from reproductions.comparison import by_algorithm
from reproductions.ppa import plans


@pytest.fixture(scope="module")
def table():
    return plans.compare("b", 2, lambda done, total: None)


@pytest.mark.extended
def test_as_printed_is_empty_where_it_gives_up_and_else_the_same(table):
    means = by_algorithm(table)
    gives_up = table.groupby(["setting", "share"])["nothing_as_printed_share"].first()
    assert set(gives_up) >= {0.0, 1.0}
    assert (means[plans.AS_PRINTED][gives_up == 1] == 0).all()
    assert (means[plans.AS_PRINTED][gives_up == 0] == means[plans.STRUCTURE_AWARE][gives_up == 0]).all()
    assert (means[plans.STRUCTURE_AWARE][gives_up == 1] > 0).any()


def test_every_series_is_drawn(table):
    panels = plans.REPRODUCTIONS[2].plot(table).axes
    for axes in panels:
        drawn = [container.get_label() for container in axes.containers]
        assert drawn == [plans.OPTIMUM, plans.STRUCTURE_AWARE, plans.GREEDY, plans.AS_PRINTED]


def test_a_plan_above_the_optimum_on_one_topology_shows(monkeypatch):
    real, asked = plans.greedy.plan, []

    def once_everything(topology, budget):
        asked.append(budget)
        return real(topology, len(topology.tasks) if len(asked) == 3 else budget)

    monkeypatch.setattr(plans.greedy, "plan", once_everything)
    table = plans.compare("a", 2, lambda done, total: None)
    above = table[table["least_room"] < -0.01]
    assert above["algorithm"].tolist() == [plans.GREEDY]
    assert above["share"].tolist() == [plans.RATIOS[2]]

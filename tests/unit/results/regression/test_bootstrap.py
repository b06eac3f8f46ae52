"""The bootstrap: its draws are what they are said to be, and its probabilities are right for few runs."""

import numpy as np
import pytest

from results.regression import bootstrap
from results.regression.bootstrap import Comparison, chances, draws_for, reaches


def comparison(*strata):
    return Comparison(tuple((np.array(a, dtype=float), np.array(b, dtype=float)) for a, b in strata))


def drawn(generator, law, shape, count):
    return [Comparison(tuple((law(generator, a), law(generator, b)) for a, b in shape)) for _ in range(count)]


@pytest.mark.parametrize("sizes", [((5, 20),), ((4, 7),), ((3, 5), (2, 6)), ((1, 4),)])
def test_each_draw_is_a_change_and_a_scatter(sizes):
    total = sum(map(sum, sizes))
    pool = np.sort(np.random.default_rng(1).normal(size=total))
    found = bootstrap._changes_drawn(sizes, 50, pool[:, None])[:, 0]
    generator = np.random.default_rng(bootstrap.SEED)
    samples = [pool[np.sort(generator.integers(0, total, (50, size)), axis=1)] for pair in sizes for size in pair]
    for draw in range(50):
        sets = [sample[draw] for sample in samples]
        changes = [np.median(a) - np.median(b) for a, b in zip(sets[::2], sets[1::2], strict=True)]
        distances = np.concatenate([np.abs(values - np.median(values)) for values in sets])
        assert found[draw] == pytest.approx(abs(np.mean(changes)) / distances.mean(), rel=1e-4)


def test_a_change_is_that_of_the_medians_and_the_mean_over_the_strata():
    one = comparison(([1, 2, 9], [4, 5, 6, 7]))
    assert one.change == 2 - 5.5
    assert comparison(([1, 2, 9], [4, 5, 6, 7]), ([10], [9, 9])).change == (2 - 5.5 + 1) / 2
    assert list(one.pool) == [-1.5, -1, -0.5, 0, 0.5, 1.5, 7]
    assert one.scatter == pytest.approx(12 / 7)


LAWS = {
    "normal": lambda generator, size: generator.normal(size=size),
    "heavy tails": lambda generator, size: generator.standard_t(3, size),
    "one-sided": lambda generator, size: np.exp(0.8 * generator.normal(size=size)),
}


@pytest.mark.extended
@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@pytest.mark.parametrize("shape", [((5, 20),), ((5, 8),), ((3, 5),), ((5, 20), (5, 20))])
def test_where_nothing_changed_small_chances_are_as_rare_as_they_say(law, shape):
    found = drawn(np.random.default_rng(2), law, shape, 2000)
    p_values = chances(found, [[one.change] for one in found], draws=4000)[:, 0]
    assert np.mean(p_values <= 0.05) <= 0.075
    assert np.mean(p_values <= 0.005) <= 0.0085


def test_a_change_of_four_scatters_is_no_chance():
    generator = np.random.default_rng(3)
    found = [Comparison(((generator.normal(size=5) + 4, generator.normal(size=20)),)) for _ in range(50)]
    assert (chances(found, [[one.change] for one in found])[:, 0] < 0.001).mean() > 0.9


def test_the_interval_holds_the_change_as_often_as_it_says():
    generator = np.random.default_rng(4)
    found = [Comparison(((generator.normal(size=5) + 1, generator.normal(size=20)),)) for _ in range(300)]
    widths = reaches(found, [0.1] * len(found), draws=2000)
    held = [abs(one.change - 1) <= width for one, width in zip(found, widths, strict=True)]
    assert np.mean(held) == pytest.approx(0.9, abs=0.04)


def test_interval_and_probability_agree():
    generator = np.random.default_rng(6)
    one = comparison((generator.normal(size=5) + 2, generator.normal(size=12)))
    p_value = chances([one], [[one.change]])[0, 0]
    wide, narrow = reaches([one, one], [p_value / 2, 2 * p_value])
    assert narrow < abs(one.change) < wide


@pytest.mark.extended
def test_more_draws_tell_smaller_probabilities_apart():
    generator = np.random.default_rng(7)
    found = [Comparison(((generator.normal(size=5) + 9, generator.normal(size=20)),)) for _ in range(3)]
    changes = [[one.change] for one in found]
    assert chances(found, changes).min() == 1 / (bootstrap.DRAWS + 1)
    level = 2e-6
    draws = draws_for(level)
    assert draws == bootstrap.BEYOND / level
    p_values = chances(found, changes, draws)[:, 0]
    assert p_values.min() < level
    widths = reaches(found, [level] * 3, draws)
    assert [p <= level for p in p_values] == [abs(one.change) > width for one, width in zip(found, widths, strict=True)]


def test_a_level_beyond_the_draws_leaves_the_interval_open():
    one = comparison(([1, 2, 3], [1, 2, 3, 4, 5]))
    assert reaches([one], [1e-6], draws=1000) == [np.inf]


@pytest.mark.parametrize(("candidates", "p_value"), [(1.0, 1.0), (2.0, 1 / (bootstrap.DRAWS + 1))])
def test_values_that_never_scatter_show_every_change(candidates, p_value):
    one = comparison(([candidates] * 5, [1.0] * 20))
    assert chances([one], [[one.change]])[0, 0] == pytest.approx(p_value)
    assert reaches([one], [0.001]) == [0]


def test_the_same_values_give_the_same_answer_alone_or_among_others():
    found = drawn(np.random.default_rng(5), LAWS["normal"], ((5, 9),), bootstrap.AT_ONCE + 1)
    found.append(comparison(([1, 2, 3], [1, 2, 3, 4, 5])))
    sizes = [[one.change, 0.5] for one in found]
    together = chances(found, sizes, draws=500)
    alone = [chances([one], [size], draws=500)[0] for one, size in zip(found, sizes, strict=True)]
    assert together == pytest.approx(np.array(alone), abs=0.003)

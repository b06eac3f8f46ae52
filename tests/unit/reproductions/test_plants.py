"""Every check of a reproduction turns its verdict when the error that it names is planted."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pandas as pd
import pytest

from models import utilization
from reproductions.catalogue import CATALOGUE
from reproductions.judging import judge
from reproductions.plants import InCode, InRows, put, scaled
from reproductions.reproduction import Computed, ReproductionCheck, ReproductionKind, holds
from reproductions.utilization import gains
from results.checks.rules import between
from tests.unit.reproductions.planting import plant
from tests.unit.reproductions.small import SMALL

EVERY = [(found, check) for found in CATALOGUE.values() for check in found.checks]


def computed() -> Iterator[object]:
    """Each check of what is computed; one that the panels of a figure share, with the first of them."""
    seen: list[ReproductionCheck] = []
    for found, check in EVERY:
        if found.kind is ReproductionKind.COMPUTED and not any(check is each for each in seen):
            seen.append(check)
            yield pytest.param(found.id, check, id=f"{found.id} {check.name}")


@cache
def table_of(id: str, error: InCode | None) -> pd.DataFrame:
    """The table of a reproduction; the error, if there is one, is in the code by now."""
    return CATALOGUE[id].compute(SMALL.get(id, 1), lambda done, total: None)


def verdict(id: str, check: ReproductionCheck, error: InCode | None = None) -> str:
    return str(judge(check, Computed(id, table_of(id, error)))["verdict"])


@pytest.mark.extended
@pytest.mark.parametrize(("id", "check"), list(computed()))
def test_a_check_notices_what_it_says_that_it_does(
    id: str, check: ReproductionCheck, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound, planted = ("fail", "pass") if check.fails else ("pass", "fail")
    assert verdict(id, check) == sound
    plant(monkeypatch, check.plant)
    assert verdict(id, check, check.plant) == planted


def test_every_check_names_its_error_in_the_code_if_it_is_computed_and_in_the_rows_if_it_is_measured() -> None:
    kinds = {ReproductionKind.COMPUTED: InCode, ReproductionKind.MEASURED: InRows}
    assert [check.name for found, check in EVERY if not isinstance(check.plant, kinds[found.kind])] == []
    assert [check.name for _, check in EVERY if not check.plant.what.strip() or check.plant.what.endswith(" of ")] == []
    with pytest.raises(TypeError, match="plant"):
        holds("it", lambda table: table, [between("a", 0, 1)], str, "from 0 to 1")


def test_a_function_is_changed_wherever_it_is_and_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    sound = utilization.daly
    with monkeypatch.context() as patch:
        plant(patch, scaled("Daly", "models.utilization:daly", 2.0))
        for found in (utilization.daly, gains.daly, gains.MODELS["Daly"]):
            assert found(0.1, 1.0, 1.0) == 2.0 * sound(0.1, 1.0, 1.0)
    assert gains.MODELS["Daly"] is gains.daly is utilization.daly is sound


def test_a_constant_is_changed_where_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, put("c = 7 s", "reproductions.utilization.gains:COST_S", 7.0))
    assert gains.COST_S == 7.0

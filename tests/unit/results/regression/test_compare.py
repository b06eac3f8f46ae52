"""Which named runs can be compared."""

import pytest

from experiments.errors import BadInput
from results.damage import Outdated
from results.regression.compare import against, side_by_side
from results.tables.schema import SCHEMA_VERSION
from tests.unit.results.regression.past import publish, write_run

pytestmark = pytest.mark.usefixtures("home")


@pytest.mark.parametrize(
    "compare", [side_by_side, lambda names: against(names[:1], names[1:])], ids=["beside", "against"]
)
def test_tables_of_another_version_are_refused_with_the_remedy(compare):
    write_run("now", 1)
    write_run("before", 2, schema_version=SCHEMA_VERSION - 1)
    with pytest.raises(BadInput, match="`aftershock results recompute before` makes them so"):
        compare(["now", "before"])


@pytest.mark.parametrize(
    "compare", [side_by_side, lambda names: against(names[:1], names[1:])], ids=["beside", "against"]
)
def test_a_published_run_of_another_version_is_refused(compare, tmp_path, monkeypatch):
    monkeypatch.setenv("AFTERSHOCK_PUBLISHED", str(tmp_path / "published"))
    write_run("now", 1)
    write_run("before", 2, schema_version=SCHEMA_VERSION - 1)
    publish("before")
    with pytest.raises(Outdated, match=f"this version reads {SCHEMA_VERSION}"):
        compare(["now", "before"])


@pytest.mark.parametrize(("speed", "differ"), [(49.0, []), (41.0, ["machine speed"]), (None, [])])
def test_runs_on_machines_of_different_speed_are_told_apart(speed, differ):
    write_run("fast", 1, machine_speed=50.0)
    write_run("other", 2, machine_speed=speed)
    assert side_by_side(["fast", "other"]).differ == against(["fast"], ["other"]).differ == differ

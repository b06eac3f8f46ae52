"""Great Expectations takes seconds to load: the runs that several tests look at are made and judged once."""

from __future__ import annotations

import pytest

from results.checks import validate
from results.runs.store import Run
from results.views.report import write_report
from tests.unit.results import synthetic


@pytest.fixture(scope="session")
def good_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A judged and reported run on which every check passes."""
    run = synthetic.make_run(tmp_path_factory.mktemp("good"))
    validate(run, synthetic.experiment())
    write_report(run, synthetic.experiment())
    return run


@pytest.fixture(scope="session")
def control_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A judged and reported run without faults."""
    run = synthetic.make_run(tmp_path_factory.mktemp("control"), kills=())
    validate(run, synthetic.experiment(faults={}))
    write_report(run, synthetic.experiment(faults={}))
    return run

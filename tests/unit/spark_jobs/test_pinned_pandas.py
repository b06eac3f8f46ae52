"""The pandas of this project is one that PySpark supports: with another, a query's log begins with a warning."""

from importlib.metadata import version
from pathlib import Path

import pandas as pd
import pytest
from pyspark.sql.pandas.utils import require_minimum_pandas_version

REQUIREMENTS = (Path(__file__).parents[3] / "requirements.in").read_text(encoding="utf-8").splitlines()


@pytest.mark.filterwarnings("error")
def test_pyspark_warns_of_nothing_with_the_pinned_pandas():
    assert f"pandas=={version('pandas')}" in REQUIREMENTS
    require_minimum_pandas_version()


def test_pyspark_warns_of_a_pandas_that_it_does_not_support_yet(monkeypatch):
    """Once PySpark no longer does, a newer pandas can be pinned."""
    monkeypatch.setattr(pd, "__version__", "3.0.0")
    with pytest.warns(FutureWarning, match="does not yet fully support pandas"):
        require_minimum_pandas_version()

"""A test run leaves nothing behind in the machine's temporary folder."""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parents[1]


def test_the_folder_of_airflow_goes_away_with_the_run_that_made_it(tmp_path):
    ask = "import os, pathlib, tests.conftest; p = pathlib.Path(os.environ['AIRFLOW_HOME']); print(p, p.is_dir())"
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(HERE.parent)}
    run = subprocess.run([sys.executable, "-c", ask], env=environment, capture_output=True, text=True, check=True)
    folder, was_there = run.stdout.split()
    assert Path(folder).parent == tmp_path
    assert was_there == "True"
    assert list(tmp_path.iterdir()) == []


def test_no_conftest_makes_a_folder_that_it_does_not_remove():
    for conftest in HERE.rglob("conftest.py"):
        assert "mkdtemp" not in conftest.read_text(encoding="utf-8"), conftest

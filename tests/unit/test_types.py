"""The type checker looks at the packages that are to be typed strictly, by the rules of pyproject.toml."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHECKED = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"]["files"]
PLANTED = {
    "[assignment]": 'seconds: int = "a minute"\n',
    "[no-untyped-def]": "def seconds_of(run):\n    return run\n",
    "[type-arg]": "def first(rows: list) -> None: ...\n",
}


def test_the_packages_that_documents_cross_are_checked() -> None:
    assert {"chaos", "experiments", "models", "results"} <= set(CHECKED)


@pytest.mark.extended
def test_planted_errors_are_found_wherever_files_are_checked(tmp_path: Path) -> None:
    spoilt = [Path(each) / "planted.py" for each in CHECKED]
    for path in spoilt:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        for package in path.parents[:-1]:
            (tmp_path / package / "__init__.py").touch()
        (tmp_path / path).write_text("".join(PLANTED.values()))
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", "cache"]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).stdout.splitlines()
    told = {(line.partition(":")[0], line.rpartition(" ")[2]) for line in found}
    assert {(str(path), code) for path in spoilt for code in PLANTED} <= told

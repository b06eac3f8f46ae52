"""The type checker looks at the packages that are to be typed strictly, by the rules of pyproject.toml."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
STRICT = ("chaos", "experiments", "models")
PLANTED = {
    "wrong.py": ('seconds: int = "a minute"\n', "[assignment]"),
    "bare.py": ("def seconds(of):\n    return of\n", "[no-untyped-def]"),
    "generic.py": ("def first(rows: list) -> None: ...\n", "[type-arg]"),
}


def test_planted_errors_are_found_in_each_package(tmp_path: Path) -> None:
    for package in STRICT:
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").touch()
        for name, (code, _) in PLANTED.items():
            (tmp_path / package / name).write_text(code)
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", "cache"]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).stdout.splitlines()
    for package in STRICT:
        for name, (_, code) in PLANTED.items():
            assert any(line.startswith(f"{package}/{name}:") and line.endswith(code) for line in found), (name, found)

"""A syntax error in an own job is told before the run."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from aftershock.run.engines import program_source
from aftershock.run.engines.own_job import OwnJob
from experiments import spec
from experiments.errors import BadInput
from experiments.spec import Experiment

ROOT = Path(__file__).parents[5]


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Experiment:
    monkeypatch.chdir(ROOT)
    return spec.load("docs/examples/own-job/experiment.yaml")


def check(example: Experiment, **fields: Path | str) -> None:
    changed = example.workload.model_copy(update={name: str(value) for name, value in fields.items()})
    program_source.check(changed)


def written(folder: Path, text: str) -> Path:
    path = folder / "mine.py"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("field", ["program", "oracle"])
@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"x = 1\nprint(\n", r"\(line 2: '\(' was never closed\)"),
        (b"x = 1\nreturn x\n", r"\(line 2: 'return' outside function\)"),
        (b"x = '\xff'\n", r"\(.*unicode.*\)"),
        (b"x = 1\0\n", r"\(.*null bytes.*\)"),
    ],
)
def test_a_file_that_is_no_python_is_refused_with_the_line(
    example: Experiment, tmp_path: Path, field: str, data: bytes, told: str
) -> None:
    path = tmp_path / "mine.py"
    path.write_bytes(data)
    with pytest.raises(BadInput, match=rf"^workload\.{field}: .* a file that is valid Python 3\.\d+\.\d+ {told}$"):
        check(example, **{field: path})


def test_what_is_no_source_is_not_judged_and_warnings_are_the_programs_own(example: Experiment, tmp_path: Path) -> None:
    packed = tmp_path / "mine.zip"
    packed.write_bytes(b"PK(")
    check(example, program=packed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(example, program=written(tmp_path, "x = '\\d'\ny = 1 is 1\n"))


def test_a_program_that_is_nested_too_deeply_to_compile_is_left_to_the_run(example: Experiment, tmp_path: Path) -> None:
    check(example, program=written(tmp_path, "x" + ".a()" * 5000))


def test_the_engine_of_an_own_job_refuses_a_syntax_error(example: Experiment, tmp_path: Path) -> None:
    job = example.workload.model_copy(update={"program": str(written(tmp_path, "print(\n"))})
    with pytest.raises(BadInput, match="a file that is valid Python"):
        OwnJob(example.model_copy(update={"workload": job}), job).check()

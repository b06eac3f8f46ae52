"""What the source of an own job's files tells before the run: no valid Python, a master that is certain to be set."""

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
SESSION = 'SparkSession.builder.appName("a").master("local[2]").getOrCreate()'


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Experiment:
    monkeypatch.chdir(ROOT)
    return spec.load("docs/examples/own-job/experiment.yaml")


def check(example: Experiment, **fields: Path | str) -> None:
    changed = example.workload.model_copy(update={name: str(value) for name, value in fields.items()})
    program_source.check(changed, elsewhere=False)


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


@pytest.mark.parametrize(
    "text",
    [
        f"spark = {SESSION}",
        f"with {SESSION} as spark:\n    pass",
        'import pyspark.sql\nspark = pyspark.sql.SparkSession.builder.master("local[2]").getOrCreate()',
        'spark = SparkSession.builder.config("spark.master", "local[2]").getOrCreate()',
        'conf = SparkConf().setAppName("a")\nconf.setMaster("local[2]")',
        'conf = SparkConf()\nconf.set("spark.master", "local[2]")\ncontext = SparkContext(conf=conf)',
        f"@command\ndef main():\n    {SESSION}\n\nmain()",
        f"def main():\n    return {SESSION}\n\nif __name__ == '__main__':\n    main()",
        f"def session():\n    return {SESSION}\n\ndef main():\n    spark = session()\n\nsys.exit(main())",
        f"for name in names:\n    parser.add_argument(name)\nspark = {SESSION}",
    ],
)
def test_a_master_that_the_program_is_certain_to_set_is_refused(example: Experiment, tmp_path: Path, text: str) -> None:
    line = 1 + text[: text.index("local[2]")].count("\n")
    told = rf"^workload\.program: .* allowed: a program that sets no Spark master: line {line} sets 'local\[2\]'$"
    with pytest.raises(BadInput, match=told):
        check(example, program=written(tmp_path, text))


@pytest.mark.parametrize(
    "text",
    [
        f"if local:\n    spark = {SESSION}",
        f"spark = {SESSION} if local else SparkSession.builder.getOrCreate()",
        f"spark = local and {SESSION}",
        f"make = lambda: {SESSION}",
        f"def only_in_tests():\n    return {SESSION}",
        f"def only_on_request():\n    return {SESSION}\n\nif local:\n    only_on_request()",
        f"try:\n    spark = {SESSION}\nexcept ImportError:\n    pass",
        f"def main():\n    if there:\n        return builder.getOrCreate()\n    return {SESSION}\n\nmain()",
        f"if cluster:\n    SparkSession.builder.getOrCreate()\n    leave()\n{SESSION}",
        'conf = SparkConf().setMaster("local[2]")\nif master:\n    conf.setMaster(master)',
        'builder = SparkSession.builder.master("local[2]")\nif master:\n    builder.config("spark.master", master)',
        'builder = SparkSession.builder.master("local[2]").config(map={"spark.master": master})',
        "spark = SparkSession.builder.master(options.master).getOrCreate()",
        'chess.master("local[2]")',
        'spark = SparkSession.builder.config("spark.app.name", "local[2]").getOrCreate()',
        "x" + ".a()" * 5000,
        "def main():\n    main()\n\nmain()",
    ],
)
def test_a_master_that_may_not_be_set_is_left_to_the_run(example: Experiment, tmp_path: Path, text: str) -> None:
    check(example, program=written(tmp_path, text))


def test_what_is_no_source_is_not_judged_and_warnings_are_the_programs_own(example: Experiment, tmp_path: Path) -> None:
    packed = tmp_path / "mine.zip"
    packed.write_bytes(b"PK(")
    check(example, program=packed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(example, program=written(tmp_path, "x = '\\d'\ny = 1 is 1\n"))


@pytest.mark.parametrize(
    ("driver", "master", "is_refused"),
    [
        ("local", "spark://10.0.0.5:7077", True),
        ("external", "spark://10.0.0.5:7077", False),  # it may be the cluster's
        ("external", "local[*]", True),
    ],
)
def test_the_engine_of_an_own_job_refuses_a_master_that_is_not_the_clusters(
    example: Experiment, tmp_path: Path, driver: str, master: str, is_refused: bool
) -> None:
    program = written(tmp_path, f'spark = SparkSession.builder.master("{master}").getOrCreate()\n')
    job = example.workload.model_copy(update={"program": str(program)})
    cluster = example.cluster.model_copy(update={"driver": driver})
    made = OwnJob(example.model_copy(update={"cluster": cluster, "workload": job}), job)
    if not is_refused:
        made.check()
        return
    with pytest.raises(BadInput, match="sets no Spark master"):
        made.check()

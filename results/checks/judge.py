"""Run checks with Great Expectations. Importing this module imports Great Expectations, which takes seconds."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from results.checks.rules import NotEnough, Rule, Seen, TableCheck, in_words
from results.damage import Damaged
from results.runs.store import discard, write_json
from results.verdict import Verdict

SPARK_CONNECT = "pyspark.sql.connect"


@contextmanager
def _spark_connect_hidden() -> Iterator[None]:
    """Make Spark Connect look absent while the body imports.

    Great Expectations imports it when it can. That import takes a process whose main module is no file (`python -c`, a
    worker of pytest-xdist) for a doctest, and ends it with exit code 0 unless every package of Spark Connect is there.
    """
    if SPARK_CONNECT in sys.modules:
        yield
        return
    sys.modules[SPARK_CONNECT] = None  # type: ignore[assignment]  # the import system's mark for "not importable"
    try:
        yield
    finally:
        del sys.modules[SPARK_CONNECT]


with _spark_connect_hidden():
    import great_expectations as gx
    import great_expectations.expectations as gxe
    from great_expectations.core.expectation_validation_result import ExpectationValidationResult
    from great_expectations.data_context.data_context.abstract_data_context import AbstractDataContext
    from great_expectations.data_context.types.base import (
        DataContextConfig,
        InMemoryStoreBackendDefaults,
        ProgressBarsConfig,
    )
    from great_expectations.exceptions.exceptions import GreatExpectationsError

DAMAGE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)  # what a damaged table leads to
VIEWS = {"module_name": "results.checks.data_docs"}


def judge_all(folder: Path, checks: Iterable[TableCheck[Seen]], evidence: Seen) -> list[dict[str, Any]]:
    """Evaluate checks; writes results.json and data_docs/ into the folder, which is replaced, and returns the rows."""
    discard(folder)
    context = open_context(folder / "data_docs")
    judged = [judge(context, check, evidence) for check in checks]
    write_json(folder / "results.json", [result for _, result in judged])
    context.build_data_docs()
    discard(folder / "data_docs" / "static")  # 5 MB of fonts and pictures that our pages do not use
    return [row for row, _ in judged]


def open_context(data_docs: Path) -> AbstractDataContext:
    """Return a context that lives in memory, reports no usage, and writes its Data Docs to a folder."""
    logging.getLogger("great_expectations").setLevel(logging.ERROR)
    site = {
        "class_name": "SiteBuilder",
        "show_how_to_buttons": False,
        "store_backend": {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(data_docs)},
        "site_index_builder": {"class_name": "DefaultSiteIndexBuilder", "view": VIEWS | {"class_name": "IndexView"}},
        "site_section_builders": {
            "expectations": {"view": VIEWS | {"class_name": "PageView"}},
            "validations": {"view": VIEWS | {"class_name": "PageView"}},
        },
    }
    config = DataContextConfig(
        store_backend_defaults=InMemoryStoreBackendDefaults(init_temp_docs_sites=False),
        data_docs_sites={"run": site},
        progress_bars=ProgressBarsConfig(globally=False),
        analytics_enabled=False,
    )
    context = gx.get_context(project_config=config, mode="ephemeral")
    context.data_sources.add_pandas("run")
    return context


def judge(
    context: AbstractDataContext, check: TableCheck[Seen], evidence: Seen
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Evaluate one check; returns its row of the verdicts table, and the result in Great Expectations' words.

    A check that cannot be evaluated (too little evidence, a damaged table, an error inside Great Expectations) is
    unknown.
    """
    row: dict[str, Any] = {"check": check.name, "table": check.table, "verdict": Verdict.UNKNOWN.value}
    try:
        frame = check.subject(evidence)
        row |= {"observed": check.observed(frame), "expected": check.expected(evidence)}
        result = _validate(context, check, evidence, frame)
    # Great Expectations hands some errors of pandas on as they are (a type that cannot be compared or written as JSON).
    # A hole in a table is no text or number: what a subject asks of one is an `AttributeError`. A 0 where none can be,
    # or a row too few, ends its arithmetic or its look-up.
    except (NotEnough, Damaged, GreatExpectationsError, *DAMAGE) as error:
        return row | {"detail": _in_one_line(error)}, {"check": check.name, "not_evaluated": str(error)}
    verdict, detail = decide(result.results)
    return row | {"verdict": verdict.value, "detail": detail}, {"check": check.name, **result.to_json_dict()}


def _validate(context: AbstractDataContext, check: TableCheck[Seen], evidence: Seen, frame: pd.DataFrame) -> Any:
    expectations = [getattr(gxe, rule.expectation)(**rule.arguments) for rule in check.rules(evidence)]
    suite = context.suites.add(gx.ExpectationSuite(name=check.name, expectations=expectations))
    asset = context.data_sources.get("run").add_dataframe_asset(check.name)  # type: ignore[attr-defined]  # it is one of pandas
    batch = asset.add_batch_definition_whole_dataframe("all")
    definition = gx.ValidationDefinition(name=check.name, data=batch, suite=suite)
    return context.validation_definitions.add(definition).run(
        batch_parameters={"dataframe": frame}, run_id=gx.RunIdentifier(run_name=evidence.name)
    )


def decide(results: list[ExpectationValidationResult]) -> tuple[Verdict, str | None]:
    """Fail when an expectation was evaluated and not met; pass only when every one was evaluated and met.

    Great Expectations skips missing values and calls what is left met, even if nothing is left. One expectation may
    find nothing to look at, as in a column that is null throughout; if all of them do, nothing was evaluated.
    """
    errors = [error for result in results for error in _errors(result.exception_info)]
    broken = [_sentence(result) for result in results if not result.success and not any(_errors(result.exception_info))]
    if broken:
        return Verdict.FAIL, "; ".join(broken)
    if errors:
        return Verdict.UNKNOWN, _in_one_line(errors[0])
    if not any(map(_looked_at, results)):
        return Verdict.UNKNOWN, "nothing was evaluated"
    return Verdict.PASS, None


def _looked_at(result: ExpectationValidationResult) -> int:
    """How many values an expectation looked at."""
    found = result.result
    return int(found.get("element_count", 0)) - int(found.get("missing_count") or 0)


def _in_one_line(told: object) -> str:
    return " ".join(str(told).split())


def _errors(info: dict[str, Any] | None) -> Iterator[str]:
    """Yield the exception messages of one result: its info is one record, or one record per metric."""
    if not info:
        return
    for record in [info] if "raised_exception" in info else info.values():
        if record["raised_exception"]:
            yield str(record["exception_message"])


def _sentence(result: ExpectationValidationResult) -> str:
    """Say what was not met, in our words: Great Expectations has none for people."""
    if (config := result.expectation_config) is None:
        return "an expectation of which nothing is told"
    rule, found = Rule(config.type.title().replace("_", ""), config.kwargs), result.result
    examples = found["partial_unexpected_list"] or [None]
    return in_words(rule, found["unexpected_count"], found["element_count"], examples[0])

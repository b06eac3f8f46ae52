"""Tables of a recorded comparison of runs, which `results.regression` writes."""

from __future__ import annotations

import pyarrow as pa

from results.tables.columns import REAL, TEXT, WHOLE, Table, may, must

_SERIES = (
    must(TEXT, "experiment", "name of the experiment"),
    must(TEXT, "experiment_digest", "digest of what makes runs of an experiment comparable"),
    must(TEXT, "machine", "class of the machine"),
    must(TEXT, "metric", "name of the metric"),
    must(TEXT, "unit", "unit of the metric"),
)

COMPARISON_TABLES: dict[str, Table] = {
    "regression": Table(
        "a metric of an experiment",
        (
            *_SERIES,
            must(TEXT, "better", "`higher` or `lower`"),
            must(TEXT, "scale", "how values are compared: `ratio`, `difference` or `count`"),
            must(TEXT, "verdict", "`worse`, `better`, `same` or `unknown`"),
            must(TEXT, "why", "reason for the verdict, as a sentence"),
            must(WHOLE, "candidates", "candidate runs with the metric", "runs"),
            must(WHOLE, "baseline", "baseline runs with the metric", "runs", label="Baseline runs"),
            may(REAL, "candidate_median", "median of the candidates, in the unit of the metric", label="Now"),
            may(REAL, "baseline_median", "median of the baseline, in the unit of the metric", label="Baseline"),
            may(REAL, "effect", "change of the median; relative on scale `ratio`"),
            may(REAL, "low", "lower end of the interval of the effect"),
            may(REAL, "high", "upper end of the interval of the effect"),
            may(REAL, "p_value", "probability that chance alone gives such a change"),
        ),
    ),
    "change_points": Table(
        "a change in the history of a metric",
        (
            *_SERIES,
            must(TEXT, "run_id", "the first run of the new level", label="From run"),
            must(TEXT, "verdict", "`worse` or `better`"),
            must(WHOLE, "started_ns", "start of the first run of the new level"),
            must(REAL, "before", "level before the change, in the unit of the metric"),
            must(REAL, "after", "level after the change, in the unit of the metric"),
            must(REAL, "p_value", "probability that chance alone gives such a change"),
        ),
    ),
}

COMPARISON_SCHEMAS: dict[str, pa.Schema] = {name: table.schema for name, table in COMPARISON_TABLES.items()}

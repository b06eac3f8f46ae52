"""A recommendation in readable form: what was run, what is advised, and the uncertainty."""

from __future__ import annotations

import math
import textwrap
from statistics import fmean
from typing import NamedTuple

from experiments.errors import BadInput
from experiments.wording import significant
from models.passive_restore import FEWEST
from results.damage import Damaged
from results.predictions.advised import Advised, advise
from results.predictions.recommendation import Recommendation
from results.predictions.recommended_copies import CopiesAdvice
from results.predictions.recommended_latency import LatencyAdvice
from results.runs.store import Run
from results.summary.findings import figure_or_dash

WIDTH = 92
UNDECIDED = "The interval as it was may be the best one already: this run can't tell the two apart."
NO_INTERVAL = "No checkpoint interval is advised. The summary of this run says of its prediction: {why}."


class Row(NamedTuple):
    """One quantity: as it was in the run, what the model gives for that, as advised, and the limits that hold what is
    advised with 95 %."""

    what: str
    was: str
    modelled: str
    advised: str
    likely: str


def rows(found: Advised) -> list[Row]:
    """The quantities of a recommendation, with their units."""
    return [
        *([] if found.interval is None else _of_interval(found.interval)),
        *([] if found.latency is None else _of_latency(found.latency)),
        *([] if found.copies is None else _of_copies(found.copies)),
    ]


def option(found: Advised) -> str | None:
    """The option with which the next run follows the advice; None if the run can't tell the two intervals apart, or
    says nothing of them, or if the advice is for another failure rate than that of such runs."""
    if found.interval is None or found.interval.given_rate is not None or _is_undecided(found.interval):
        return None
    advised = significant(found.interval.advice.optimal_interval_s).replace(",", "")
    return f"--set engine.checkpoint_interval_s={advised}"


def remark(found: Advised) -> str | None:
    """What to say of the interval in place of an option; None if there is nothing to say."""
    if found.interval is not None:
        return UNDECIDED if _is_undecided(found.interval) else None
    return None if found.why_no_interval is None else NO_INTERVAL.format(why=found.why_no_interval)


def _is_undecided(found: Recommendation) -> bool:
    low_s, high_s = found.interval_s
    return low_s <= found.advice.interval_s <= high_s


def failure_rate(found: Advised) -> str | None:
    """The failure rate at which the interval is advised; None if none is."""
    if found.interval is None:
        return None
    at, of_the_run = significant(found.interval.failure_rate), significant(found.interval.measured_rate)
    source = "as in the run" if found.interval.given_rate is None else f"as given; the run had {of_the_run}"
    return f"  at {at} failures per second, {source}"


def partitions(found: Advised) -> str | None:
    """The partitions to copy; None without advice on copies."""
    if found.copies is None:
        return None
    return f"Copy {', '.join(found.copies.partitions) or 'nothing'}."


def copies_option(found: Advised) -> str | None:
    """The options with which the next run has these copies; None without advice on copies."""
    return None if found.copies is None else found.copies.options


def models(found: Advised) -> list[str]:
    """The model behind each row."""
    return [f"{name.replace('_', ' ')}: {text}" for name, text in found.models.items()]


def recommended(found: Advised) -> str:
    """For a terminal, of at most 92 columns but for what is to be pasted."""
    title = [each for each in (f"Recommended by run {found.run_id}", failure_rate(found)) if each is not None]
    lines = [*title, f"{'':21}{'as it was':>10}{'modelled':>10}{'advised':>10}   95 % interval"]
    lines += [
        f"  {row.what:19}{row.was:>10}{row.modelled:>10}{row.advised:>10}   {row.likely}".rstrip()
        for row in rows(found)
    ]
    to_set = option(found)
    interval = remark(found) if to_set is None else f"For the next run: {to_set}"
    advice = [each for each in (interval, partitions(found)) if each is not None]
    to_paste = [each for each in (copies_option(found),) if each is not None]  # in one line, however long
    return "\n".join([*lines, *_wrapped(advice), *to_paste, *_wrapped(["", *models(found)])])


def _wrapped(texts: list[str]) -> list[str]:
    return [line for each in texts for line in textwrap.wrap(each, WIDTH, subsequent_indent="  ") or [""]]


def recommendation_of(run: Run) -> Advised | None:
    """What a run advises; None of a run that advises nothing, or of which too little is there to say."""
    try:
        return advise(run)
    except (BadInput, Damaged, FileNotFoundError):
        return None


def _of_interval(found: Recommendation) -> list[Row]:
    best, latency, (low_s, high_s) = found.advice, found.latency, found.interval_s
    low = significant(low_s)
    reach = f"{low} s or more" if math.isinf(high_s) else f"{low} to {significant(high_s)} s"
    singles = f"{significant(latency.low)} to {significant(latency.high)} s of single recoveries"
    singles = "not known: one recovery" if math.isnan(latency.low) else singles
    was, was_s = figure_or_dash(found.measured.utilization), found.measured.latency_s
    return [
        Row("checkpoint interval", _seconds(best.interval_s), "", _seconds(best.optimal_interval_s), reach),
        Row("utilization", was, significant(best.expected), significant(best.optimal_expected), _one_run(found)),
        Row(
            "recovery latency",
            "-" if was_s is None else _seconds(was_s),
            _seconds(found.latency_now_s),
            _seconds(latency.value),
            singles,
        ),
    ]


def _of_latency(found: LatencyAdvice) -> list[Row]:
    """Of promoted copies as much is expected as in the run: their latency depends on no setting."""
    rows = []
    if found.restored_s:
        was, latency = _seconds(fmean(found.restored_s)), found.expected
        if latency is None:
            few = len(found.restored_s) < FEWEST
            why = f"fewer than {FEWEST} restores" if few else "no restore replayed input"
            rows.append(Row("latency, restored", was, "", "-", f"not known: {why}"))
        else:
            singles = f"{significant(latency.low)} to {_seconds(latency.high)} of single faults"
            rows.append(Row("latency, restored", was, "", _seconds(latency.value), singles))
    if found.promoted_s:
        mean, least, most = (_seconds(of(found.promoted_s)) for of in (fmean, min, max))
        seen = f"{least} to {most} in the run" if len(found.promoted_s) > 1 else "not known: one promotion"
        rows.append(Row("latency, promoted", mean, "", mean, seen))
    return rows


def _of_copies(found: CopiesAdvice) -> list[Row]:
    """Fidelity follows from the plan and the rates, so it has no limits."""
    expected = "accuracy while all others are down" if found.is_accuracy else "not the accuracy of this query"
    return [
        Row(
            "partitions copied",
            str(found.copied_now),
            "",
            str(len(found.partitions)),
            f"at most {found.budget} of {found.count}",
        ),
        Row("output fidelity", "", significant(found.fidelity_now), significant(found.fidelity), expected),
    ]


def _one_run(found: Recommendation) -> str:
    if found.given_rate is not None:
        return "none: it is the mean in the long run"
    if not found.is_of_eq_10:
        return "not known where failures take a part"
    if found.utilization is None:
        return "not known: too little was measured"
    low, high = found.utilization
    return f"{significant(low)} to {significant(high)} in one run of {_seconds(found.window_s)}"


def _seconds(value: float) -> str:
    return f"{significant(value)} s"

"""`aftershock results publish`: put results of this installation into the repository's `published/`."""

from __future__ import annotations

import argparse
from typing import Any

from aftershock.cli.declare import PASSED, command, show
from experiments.errors import BadInput


def add(words: Any) -> None:
    """Declare `aftershock results publish`."""
    text = "put results of this installation into published/, which comes with the repository"
    declared = command(words, "publish", text, publish)
    wanted = "a finished run, or a table or figure such as utilization/fig-04"
    without = "default: the newest run of each example, and every table and figure of this installation"
    declared.add_argument("ids", nargs="*", metavar="ID", help=f"{wanted}; {without}")
    text = "without an id: first run each example that has no published run"
    declared.add_argument("--run-missing", action="store_true", help=text)
    text = "judge the published tables of these ids again, by today's checks; nothing is run or computed"
    declared.add_argument("--judge-again", action="store_true", help=text)


def publish(arguments: argparse.Namespace) -> int:
    """Publish results; raises `BadInput` for one that cannot be published, and then publishes none."""
    from dataclasses import asdict

    from results.publication import examples_not_published, publish_results

    if arguments.judge_again:
        return _judge_again(arguments)
    if arguments.run_missing and arguments.ids:
        raise BadInput("--run-missing", arguments.ids[0], "no id with it: it runs examples")
    if arguments.run_missing:
        from aftershock.airflow.missing_runs import run_examples  # brings Airflow

        run_examples()
    done, missing = publish_results(arguments.ids), examples_not_published()
    lines = [f"published {id}" for id in done.changed]
    lines += [f"unchanged {id}" for id in done.unchanged]
    lines += [f"left out {id}: the published table is of more runs" for id in done.left_out]
    lines = lines or ["nothing here to publish"]
    if missing and not arguments.ids:
        lines.append(f"without a published run: {', '.join(missing)}")
    show(arguments, {**asdict(done), "missing": missing}, "\n".join(lines))
    return PASSED


def _judge_again(arguments: argparse.Namespace) -> int:
    """Judge published tables again; raises `BadInput` for an id without one, and then judges none."""
    if arguments.run_missing:
        raise BadInput("--judge-again", "--run-missing", "one of the two")
    if not arguments.ids:
        raise BadInput("--judge-again", "no id", "the ids of published tables with it, such as utilization/fig-04")
    from reproductions.judge_again import judge_again

    done = judge_again(arguments.ids)
    lines = [f"judged again {id}" for id in done.changed] + [f"unchanged {id}" for id in done.unchanged]
    show(arguments, {"changed": done.changed, "unchanged": done.unchanged}, "\n".join(lines))
    return PASSED

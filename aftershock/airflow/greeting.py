"""The message that `serve` prints once Airflow answers: addresses, the login, and a first step if there is no run."""

from __future__ import annotations

import sys

from rich.box import ROUNDED
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from aftershock.airflow.environment import ADMIN, PAGES, admin_password, password_file
from results.runs import store

BENCHMARK = "dags/benchmark"
FIRST_RUN = "make benchmark"


def greet(address: str) -> None:
    """Print it; in a box with the password if a person reads it at a terminal, else on lines without it.

    What is no terminal may be a file that others read.
    """
    if not sys.stdout.isatty():
        print(f"Airflow: {address}/{PAGES}/  user: {ADMIN}  password: in {password_file()}", flush=True)
        return
    login = [("results", f"{address}/{PAGES}/"), ("user", ADMIN), ("password", admin_password())]
    table = Table.grid(padding=(0, 2))
    for name, value in login + first_step(address):
        table.add_row(Text(name, style="dim"), Text(value, overflow="fold"))
    console = Console(highlight=False, markup=False)
    console.print(Panel(table, title="Aftershock", subtitle="Ctrl-C ends it", box=ROUNDED, expand=False))


def first_step(address: str) -> list[tuple[str, str]]:
    """What to do first, if nothing has ever been run here: lines, each with its name.

    Airflow answers before its DAG processor has read the DAG files for the first time.
    """
    if store.all_finished() or store.all_live():
        return []
    return [
        ("first step", f"press Trigger at {address}/{BENCHMARK}"),
        ("", "(at the first start, the DAG appears there some seconds later)"),
        ("", f"or run `{FIRST_RUN}` in another terminal"),
    ]

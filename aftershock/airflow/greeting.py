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
    lines = {"results": f"{address}/{PAGES}/", "user": ADMIN, "password": admin_password()} | first_step(address)
    table = Table.grid(padding=(0, 2))
    for name, value in lines.items():
        table.add_row(Text(name, style="dim"), Text(value, overflow="fold"))
    console = Console(highlight=False, markup=False)
    console.print(Panel(table, title="Aftershock", subtitle="Ctrl-C ends it", box=ROUNDED, expand=False))


def first_step(address: str) -> dict[str, str]:
    """What to do first, if nothing has ever been run here."""
    if store.all_finished() or store.all_live():
        return {}
    return {"first step": f"press Trigger at {address}/{BENCHMARK}", "": f"or run `{FIRST_RUN}` in another terminal"}

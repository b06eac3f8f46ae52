"""Absolute addresses of pages and DAG runs, by the base address in Airflow's configuration."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from airflow.sdk import BaseOperatorLink
from airflow.sdk.configuration import conf

from aftershock.airflow.environment import PAGES


def base_url() -> str:
    """The address of Airflow, without a slash at its end."""
    return str(conf.get("api", "base_url", fallback="http://127.0.0.1:8080")).rstrip("/")


def page(path: str) -> str:
    """The address of one of our pages within Airflow, such as `runs/RUN_ID`."""
    return f"{base_url()}/{PAGES}/{quote(path)}"


def run_page(run_id: str) -> str:
    """The address of the page of a run."""
    return page(f"runs/{run_id}")


def regression_page(regression_id: str) -> str:
    """The address of the page of a recorded comparison."""
    return page(f"regressions/{regression_id}")


def dag_run_page(dag_id: str, dag_run: str) -> str:
    """The address of Airflow's own page of a DAG run."""
    return f"{base_url()}/dags/{quote(dag_id)}/runs/{quote(dag_run)}"


class RunPage(BaseOperatorLink):
    """A button on a task of the DAG `benchmark`: the page of its run."""

    name = "Results of the run"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        """The address of the page; empty before the run has begun."""
        from airflow.sdk.execution_time.xcom import XCom

        run_id = XCom.get_one(
            key="return_value", dag_id=ti_key.dag_id, task_id="begin", run_id=ti_key.run_id, map_index=-1
        )
        return run_page(run_id) if run_id else ""

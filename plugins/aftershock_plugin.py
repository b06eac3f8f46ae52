"""The plugin that Airflow loads: the pages as an app of the API server, the entry that opens them in the UI, and what
happens when a task is ended by hand."""

from functools import cached_property
from types import ModuleType
from typing import Any

from airflow.plugins_manager import AirflowPlugin

from plugins import ended_by_hand

# No leading slash: Airflow resolves these against its own base address, which may carry a path.
LINKS: list[dict[str, str | bool]] = [
    {
        "name": "Aftershock",
        "href": "aftershock/",
        "destination": "nav",
        "url_route": "aftershock",
        "nav_top_level": True,
        "icon": "aftershock/static/latest/icon.svg",
    },
    {
        "name": "Results",
        "href": "aftershock/dag-runs/{RUN_ID}",
        "destination": "dag_run",
        "url_route": "aftershock-results",
        "icon": "aftershock/static/latest/icon.svg",
    },
]
LISTENERS: list[ModuleType | object] = [ended_by_hand]


class AftershockPlugin(AirflowPlugin):
    """Mounts the pages under /aftershock and puts links to them into the navigation and beside a DAG run."""

    name = "aftershock"
    external_views = LINKS
    listeners = LISTENERS

    # Built on demand: the scheduler and every task load this file too, and have no use for the pages' imports.
    # Airflow declares a list, and only ever reads it.
    @cached_property
    def fastapi_apps(self) -> list[dict[str, Any]]:  # type: ignore[override]
        """What Airflow mounts on its web server."""
        from plugins.pages import create_app

        return [{"name": "Aftershock", "url_prefix": "/aftershock", "app": create_app()}]

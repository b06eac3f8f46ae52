"""Views for Great Expectations' Data Docs that load nothing from outside the machine and run no script.

The built-in pages take their styles, scripts and images from a dozen public hosts, and fill the index by script.
"""

from __future__ import annotations

from pathlib import Path

from great_expectations.render.view.view import DefaultJinjaPageView
from jinja2 import ChoiceLoader, FileSystemLoader

TEMPLATES = Path(__file__).parent.parent / "templates"


class PageView(DefaultJinjaPageView):
    """A page of an expectation suite or of a validation result."""

    def __init__(self, custom_styles_directory: str | None = None, custom_views_directory: str | None = None) -> None:
        super().__init__(custom_styles_directory, custom_views_directory)
        ours = FileSystemLoader([TEMPLATES / "data_docs", TEMPLATES])
        self.env.loader = ChoiceLoader([ours, *filter(None, [self.env.loader])])


class IndexView(PageView):
    """The index of all validation results."""

    _template = "index_page.j2"

"""Plant in the code what a check of a reproduction must notice."""

from __future__ import annotations

import sys
from importlib import import_module
from types import FunctionType
from typing import Any

import pytest

from reproductions.plants import InCode

OURS = ("models", "reproductions", "spark_jobs")


def plant(patch: pytest.MonkeyPatch, error: InCode) -> None:
    """Change what the plant names; a function of ours wherever a module of ours has it, under a name or in a table."""
    module, _, path = error.at.partition(":")
    *within, name = path.split(".")
    owner: Any = import_module(module)
    for each in within:
        owner = getattr(owner, each)
    sound = getattr(owner, name)
    wrong = error.change(sound)
    patch.setattr(owner, name, wrong)
    if isinstance(sound, FunctionType) and not within:
        _change_everywhere(patch, sound, wrong)


def _change_everywhere(patch: pytest.MonkeyPatch, sound: Any, wrong: Any) -> None:
    modules = [found for name, found in list(sys.modules.items()) if name.partition(".")[0] in OURS and found]
    for module in modules:
        for name, value in list(vars(module).items()):
            if value is sound:
                patch.setattr(module, name, wrong)
            elif isinstance(value, dict) and not name.startswith("__"):
                for key in [key for key, held in value.items() if held is sound]:
                    patch.setitem(value, key, wrong)

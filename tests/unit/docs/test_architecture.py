"""The page of the architecture says which packages each package imports."""

import ast
import re

import pytest

from tests.unit.own_code import ROOT, trees

PAGE = (ROOT / "docs" / "reference" / "architecture.md").read_text(encoding="utf-8")


def told(page):
    """By package the names of what it imports, as the table has them."""
    rows = re.search(r"\| package \| imports \|\n\|---\|---\|\n((?:\|.*\n)+)", page).group(1).splitlines()
    cells = [[re.findall(r"`([\w.]+)`", cell) for cell in row.strip("|").split("|")] for row in rows]
    found = {package: set(imports) for packages, imports in cells for package in packages}
    return {package: imports or set(found) - {package} for package, imports in found.items()} | {"experiments": set()}


TOLD = told(PAGE)


def imported(package):
    """The full names of the modules of other packages that a package imports."""
    own = [tree for path, tree in trees().items() if path.parts[0] == package]
    nodes = [node for tree in own for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    names = [f"{node.module}.{each.name}" for node in nodes if isinstance(node, ast.ImportFrom) for each in node.names]
    names += [each.name for node in nodes if isinstance(node, ast.Import) for each in node.names]
    return {name for name in names if name.split(".")[0] in set(TOLD) - {package}}


def is_within(name, package):
    return f"{name}.".startswith(f"{package}.")


def differences(package, says):
    """Imports that are not told, and what is told and not imported."""
    found = imported(package)
    beyond = {name for name in found if not any(is_within(name, each) for each in says)}
    return beyond, {each for each in says if not any(is_within(name, each) for name in found)}


@pytest.mark.parametrize("package", TOLD)
def test_the_table_has_the_imports_of_a_package(package):
    beyond, unused = differences(package, TOLD[package])
    assert not beyond
    assert not unused or package == "aftershock"  # which imports what is below it, and no page


def test_an_import_that_is_not_told_and_one_that_is_not_there_are_noticed():
    beyond, unused = differences("workloads", {"infra.broker", "experiments", "chaos"})
    assert {name.split(".")[0] for name in beyond} == {"journal"}
    assert unused == {"chaos"}

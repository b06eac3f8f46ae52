"""No class does so much that a reader cannot keep it in mind."""

import ast

import pytest

from tests.unit.own_code import modules
from tests.unit.test_docstrings import FUNCTIONS

MOST_METHODS = 25  # of its own, with or without decorators


def statements(node):
    """All that is within, at any depth, but for expressions, in which no class can be."""
    for each in ast.iter_child_nodes(node):
        if not isinstance(each, ast.expr):
            yield each
            yield from statements(each)


def too_large(trees):
    """The classes with more methods, by their dotted names, and how many they have."""
    found = {}
    for module, tree in trees.items():
        for node in statements(tree):
            if isinstance(node, ast.ClassDef):
                methods = sum(isinstance(each, FUNCTIONS) for each in node.body)
                found |= {f"{module}.{node.name}": methods} if methods > MOST_METHODS else {}
    return found


def test_no_class_has_too_many_methods():
    assert too_large(modules()) == {}


@pytest.mark.parametrize(
    ("method", "within"),
    [
        ("def {}(self): ...", "{}"),
        ("async def {}(self): ...", "{}"),
        ("@property\ndef {}(self): ...", "{}"),
        ("def {}(self): ...", "if True:\n{}"),
        ("def {}(self): ...", "def made():\n{}"),
    ],
)
def test_a_class_with_one_too_many_is_noticed(method, within):
    found = []
    for count in (MOST_METHODS, MOST_METHODS + 1):
        body = "\n".join(method.format(f"m{number}") for number in range(count))
        text = "class Large:\n" + "\n".join(f"    {line}" for line in body.splitlines())
        text = text if within == "{}" else within.format("\n".join(f"    {line}" for line in text.splitlines()))
        found.append(too_large({"somewhere": ast.parse(text)}))
    assert found == [{}, {"somewhere.Large": MOST_METHODS + 1}]


def test_functions_within_methods_are_no_methods():
    inner = "\n".join(f"        def f{number}(): ..." for number in range(MOST_METHODS + 1))
    assert too_large({"somewhere": ast.parse(f"class Small:\n    def only(self):\n{inner}\n")}) == {}

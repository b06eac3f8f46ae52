"""Every public name says what it is: by a docstring of its own, or by that of the method that it overrides."""

import ast

from tests.unit.own_code import modules

FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


def undocumented(trees):
    """The public modules, classes, functions and methods without a docstring, by their dotted names."""
    classes = {f"{module}.{node.name}": node for module, tree in trees.items() for node in tree.body if is_class(node)}
    meant = {module: imported(tree) for module, tree in trees.items()}

    def resolved(module, name):
        first, _, rest = name.partition(".")
        found = meant[module].get(first, f"{module}.{first}")
        found = f"{found}.{rest}" if rest else found
        owner, _, last = found.rpartition(".")
        if found in classes or owner not in meant or last not in meant[owner]:
            return found
        return resolved(owner, last)  # a package that passes a name on

    def says(full_name, method):
        """Whether a class or one of its bases has a docstring for a method."""
        if (node := classes.get(full_name)) is None:
            return False
        module = full_name.rpartition(".")[0]
        own = any(isinstance(each, FUNCTIONS) and each.name == method and ast.get_docstring(each) for each in node.body)
        bases = (ast.unparse(base).partition("[")[0] for base in node.bases)
        return own or any(says(resolved(module, base), method) for base in bases)

    found = []
    for module, tree in trees.items():
        found += [] if ast.get_docstring(tree) or not tree.body else [module]
        for node in tree.body:
            if is_public(node) and not ast.get_docstring(node):
                found.append(f"{module}.{node.name}")
        for node in filter(is_class, tree.body):
            methods = {each.name for each in node.body if isinstance(each, FUNCTIONS) and is_public(each)}
            if is_public(node):
                full_name = f"{module}.{node.name}"
                found += [f"{full_name}.{method}" for method in sorted(methods) if not says(full_name, method)]
    return found


def imported(tree):
    """What the names that a module imports stand for."""
    found = {}
    checked_only = [each for node in tree.body if isinstance(node, ast.If) for each in node.body]  # TYPE_CHECKING
    for node in (*tree.body, *checked_only):
        if isinstance(node, ast.ImportFrom):
            found |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
        elif isinstance(node, ast.Import):
            found |= {each.asname: each.name for each in node.names if each.asname}
    return found


def is_class(node):
    return isinstance(node, ast.ClassDef)


def is_public(node):
    return isinstance(node, ast.ClassDef | FUNCTIONS) and not node.name.startswith("_")


def test_every_public_name_has_a_docstring():
    assert undocumented(modules()) == []


def test_a_name_without_one_is_noticed_and_one_that_overrides_is_not():
    trees = {
        "chaos.base": '"""x"""\nclass Base:\n    """x"""\n    def told(self):\n        """x"""\n',
        "chaos": '"""x"""\nfrom chaos.base import Base\n',
        "chaos.silent": "from chaos import Base\ndef alone(): ...\ndef _own(): ...\n"
        "class Heir(Base[int]):\n    def told(self): ...\n    def untold(self): ...\n    def _own(self): ...\n",
    }
    assert undocumented({name: ast.parse(text) for name, text in trees.items()}) == [
        "chaos.silent",
        "chaos.silent.alone",
        "chaos.silent.Heir",
        "chaos.silent.Heir.untold",
    ]

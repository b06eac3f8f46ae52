"""Refuses an own job by the source of its Python files, which are compiled and never executed.

A master of its own counts only if it is the master of the only session that the program makes: it is written once, as a
literal, under no condition. Any other master is found when the program starts its session.
"""

from __future__ import annotations

import ast
import platform
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from experiments.errors import BadInput
from experiments.workloads.catalogue import OwnJobSpec

PYTHON = f"Python {platform.python_version()}"  # on every host, the same one
SOURCE = ".py"  # a program may also be compiled or packed already
LOCAL = "local"  # Spark's masters without a cluster begin with it
KEY = "spark.master"
CONDITIONAL = (ast.If, ast.IfExp, ast.BoolOp, ast.Match, ast.For, ast.While, ast.Try, ast.Lambda)


def check(job: OwnJobSpec, *, elsewhere: bool) -> None:
    """Raise `BadInput` for a program or an oracle that is no valid Python, and for a program that sets a master.

    With hosts `elsewhere` the master of the cluster may be known in advance, so that only a local one is wrong.
    """
    with suppress(RecursionError, MemoryError):  # what is nested too deeply is not judged
        if job.oracle:
            _parsed("workload.oracle", job.oracle)
        if program := _parsed("workload.program", job.program):
            _refuse_own_master(job, program, elsewhere)


def _refuse_own_master(job: OwnJobSpec, program: ast.Module, elsewhere: bool) -> None:
    call = _only_setter(program)
    master = None if call is None else _master(call)
    if call is not None and master is not None and (not elsewhere or master.startswith(LOCAL)):
        allowed = f"a program that sets no Spark master: line {call.end_lineno} sets {master!r}"
        raise BadInput("workload.program", job.program, allowed)


def _parsed(field: str, path: str) -> ast.Module | None:
    """The syntax tree of a source file; None if it is no source."""
    if not path.endswith(SOURCE):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(Path(path).read_bytes(), path)
            compile(tree, path, "exec", dont_inherit=True)
    except SyntaxError as error:
        where = f"line {error.lineno}: " if error.lineno else ""
        raise BadInput(field, path, f"a file that is valid {PYTHON} ({where}{error.msg})") from None
    except ValueError as error:
        raise BadInput(field, path, f"a file that is valid {PYTHON} ({error})") from None
    except OSError as error:
        raise BadInput(field, path, f"a readable Python file ({error.strerror})") from None
    return tree


def _only_setter(program: ast.Module) -> ast.Call | None:
    """The call that sets a literal master; None if a condition, another mention or another session may overrule it."""
    nodes = list(ast.walk(program))
    if sum(map(_mentions_master, nodes)) != 1 or sum(map(_makes_session, nodes)) > 1:
        return None
    certain = list(_unconditional(program))
    call = next((node for node in certain if isinstance(node, ast.Call) and _master(node) is not None), None)
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    around = {function.name for function in functions if call in ast.walk(function)}
    return call if around <= {node.id for node in certain if isinstance(node, ast.Name)} else None


def _unconditional(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below one that stand under no condition but the question for `__main__`."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, CONDITIONAL) or (isinstance(child, ast.If) and "__main__" in ast.unparse(child.test)):
            yield child
            yield from _unconditional(child)


def _mentions_master(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in ("master", "setMaster")
    return isinstance(node, ast.Constant) and node.value == KEY


def _makes_session(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "getOrCreate"


def _master(call: ast.Call) -> str | None:
    """The literal that a call sets as the master of a session or of its configuration; None of any other call."""
    if not isinstance(call.func, ast.Attribute):
        return None
    texts = [each.value if isinstance(each, ast.Constant) else None for each in call.args]
    match call.func.attr, texts:
        case ("setMaster", [str(master)]) | ("set" | "config", ["spark.master", str(master)]):
            return master
        case "master", [str(master)] if _is_of_a_builder(call.func):
            return master
    return None


def _is_of_a_builder(method: ast.Attribute) -> bool:
    """Whether a method is one of `SparkSession.builder`, after any others in a row."""
    node = method.value
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node = node.func.value
    return f".{ast.unparse(node)}".endswith(".SparkSession.builder")

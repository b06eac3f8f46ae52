"""Refuses an own job by the source of its Python files, which are compiled and never executed.

A master of its own counts only if the program is certain to set it: as a literal, in a statement that is executed
whatever the arguments are. Any other master is found when the program starts its session.
"""

from __future__ import annotations

import ast
import platform
import warnings
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from experiments.errors import BadInput
from experiments.workloads.catalogue import OwnJobSpec

PYTHON = f"Python {platform.python_version()}"  # on every host, the same one
SOURCE = ".py"  # a program may also be compiled or packed already
LOCAL = "local"  # Spark's masters without a cluster begin with it
Functions = dict[str, ast.FunctionDef]
# Expressions of which a part is executed later, often, or not at all.
UNCERTAIN = (ast.Lambda, ast.IfExp, ast.BoolOp, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
LEAVES = (ast.Return, ast.Raise)
EXITS = frozenset({"exit", "_exit", "quit"})


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
    functions = {each.name: each for each in program.body if isinstance(each, ast.FunctionDef)}
    for call in _calls(program.body, functions):
        master = _master(call)
        if master is not None and (not elsewhere or master.startswith(LOCAL)):
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


def _calls(body: Iterable[ast.stmt], functions: Functions) -> Iterator[ast.Call]:
    """The calls that are made whenever this body is executed, those in functions that it calls included.

    Each function is entered once: it leaves the `functions` that are still to be entered.
    """
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if isinstance(statement, ast.If) and _asks_for_main(statement):
            yield from _calls(statement.body, functions)
        elif isinstance(statement, ast.With):
            yield from _calls_in([item.context_expr for item in statement.items], functions)
            yield from _calls(statement.body, functions)
        elif isinstance(statement, ast.Try) and not statement.handlers:
            yield from _calls(statement.body, functions)
        elif isinstance(statement, ast.Expr | ast.Assign | ast.AnnAssign | ast.Return):
            yield from _calls_in([statement], functions)
        if _may_end(statement):
            return


def _calls_in(nodes: Iterable[ast.AST], functions: Functions) -> Iterator[ast.Call]:
    for node in nodes:
        if isinstance(node, UNCERTAIN):
            continue
        yield from _calls_in(ast.iter_child_nodes(node), functions)
        if not isinstance(node, ast.Call):
            continue
        yield node
        called = functions.pop(node.func.id, None) if isinstance(node.func, ast.Name) else None
        if called and _is_plain(called):
            yield from _calls(called.body, functions)


def _asks_for_main(statement: ast.If) -> bool:
    return ast.unparse(statement.test) in ("__name__ == '__main__'", "'__main__' == __name__")


def _may_end(statement: ast.stmt) -> bool:
    """Whether the statements after this one may never be executed."""
    for node in ast.walk(statement):
        if isinstance(node, LEAVES):
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            if name in EXITS:
                return True
    return False


def _is_plain(function: ast.FunctionDef) -> bool:
    """Whether a call executes the body of this function, and nothing else."""
    yields = any(isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(function))
    return not function.decorator_list and not yields


def _master(call: ast.Call) -> str | None:
    """The literal that a call sets as the master of a session or of its configuration; None of any other call."""
    if not isinstance(call.func, ast.Attribute) or call.keywords:
        return None
    texts = [each.value if isinstance(each, ast.Constant) else None for each in call.args]
    match call.func.attr, texts:
        case "setMaster", [str(master)]:
            return master
        case ("master", [str(master)]) | ("config", ["spark.master", str(master)]) if _is_of_a_builder(call.func):
            return master
    return None


def _is_of_a_builder(method: ast.Attribute) -> bool:
    """Whether a method is one of `SparkSession.builder`, after any others in a row."""
    node = method.value
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node = node.func.value
    return f".{ast.unparse(node)}".endswith(".SparkSession.builder")

"""What could let somebody in is written down here: code that listens, unpickles, or uses the shared temporary folder.

If you add such code, add its row here, and to `docs/reference/threat-model.md` what protects it.
"""

from __future__ import annotations

import ast
from functools import cache
from typing import NamedTuple

import pytest

from tests.unit.own_code import PACKAGES, ROOT, trees

LISTENS = {
    "bind",
    "create_server",
    "start_server",
    "start_unix_server",
    "create_unix_server",
    "create_datagram_endpoint",
}
SERVERS = {"http.server", "socketserver", "wsgiref.simple_server", "xmlrpc.server", "multiprocessing.connection"}
UNPICKLES = {"pickle", "_pickle", "shelve", "marshal", "dill", "cloudpickle", "joblib"}
SHARED = {"gettempdir", "mkstemp", "mktemp"}
SHARED_FOLDERS = {"/tmp", "/var/tmp", "/dev/shm"}

WHO_LISTENS = {
    "aftershock/airflow/serve.py": "tries whether a port is free",
    "infra/processes.py": "tries whether a port is free",
    "infra/strikes/datagrams.py": "counts datagrams with a word that was drawn, and answers nothing",
    "testbed/runtime/network/admission.py": "a greeting with the run's secret comes first",
    "testbed/runtime/network/wire.py": "chooses the address from which it connects",
    "testbed/scaling/measure.py": "takes its own connection alone",
}
WHO_UNPICKLES = {
    "testbed/operators/state.py": "of objects in a store, after their seal",
    "testbed/output_log/objects.py": "of objects in a store, after their seal",
    "testbed/simulation/copies.py": "writes only, to compare",
}
WHO_USES_SHARED_FOLDERS = {
    "infra/docker/mounts.py": "in a container, a folder of its own",
    "infra/services/startup.py": "the lock on provisioning: `experiments.locks`",
    "infra/ssh/claims.py": "claims, whose owner is checked",
}


class Mentions(NamedTuple):
    """What a module mentions.

    named     variables and attributes
    imported  modules, and what is taken of them: by its own name, and with that of its module before it
    keywords  arguments of calls
    texts     constants
    """

    named: set[str]
    imported: set[str]
    keywords: set[str | None]
    texts: set[str]


def mentions(tree: ast.AST) -> Mentions:
    found = Mentions(set(), set(), set(), set())
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                found.named.add(name)
            case ast.Import(names=aliases):
                found.imported.update(alias.name for alias in aliases)
            case ast.ImportFrom(module=module, names=aliases):
                names = {alias.name for alias in aliases}
                found.imported.update({module or ""} | names | {f"{module or ''}.{name}" for name in names})
            case ast.keyword(arg=keyword):
                found.keywords.add(keyword)
            case ast.Constant(value=str() as text):
                found.texts.add(text)
    return found


def listens(code: Mentions) -> bool:
    """By any mention of a function that does, since it may be called under another name, or of a module of servers."""
    return bool((code.named | code.imported) & (LISTENS | SERVERS))


def unpickles(code: Mentions) -> bool:
    """NumPy and pandas unpickle where they are told to."""
    imports = any(name.partition(".")[0] in UNPICKLES for name in code.imported)
    return imports or "allow_pickle" in code.keywords or "read_pickle" in code.named


def uses_shared_folders(code: Mentions) -> bool:
    return bool(code.named & SHARED) or any(
        text == each or text.startswith(f"{each}/") for text in code.texts for each in SHARED_FOLDERS
    )


LOOKS = {
    "listens": (listens, WHO_LISTENS),
    "unpickles": (unpickles, WHO_UNPICKLES),
    "uses shared folders": (uses_shared_folders, WHO_USES_SHARED_FOLDERS),
}
PLANTED = {
    "listens": [
        "import socket\nwith socket.create_server(('', 0)): pass",
        "from socket import create_server\ncreate_server(('', 0))",
        "def f(door): door.bind('\\0name')",
        "import asyncio\nasync def f(): await asyncio.start_server(print, port=1)",
        "import http.server\nhttp.server.HTTPServer(('', 1), None)",
        "from http.server import ThreadingHTTPServer as Server\nclass Mine(Server): pass",
        "from http import server",
        "import socketserver as s\nclass Mine(s.ThreadingTCPServer): pass",
        "from multiprocessing.connection import Listener\nListener()",
        "async def f(loop): await loop.create_datagram_endpoint(print)",
        "from asyncio import start_unix_server as begin\nbegin",
    ],
    "unpickles": [
        "import pickle",
        "def f():\n    from cloudpickle import loads",
        "import numpy\nnumpy.load('a', allow_pickle=True)",
        "import pandas\npandas.read_pickle('a')",
    ],
    "uses shared folders": [
        "import tempfile\nLOCK = tempfile.gettempdir() + '/lock'",
        "from tempfile import mkstemp\nmkstemp()",
        "LOCK = '/tmp/lock'",
        "from pathlib import Path\nFOLDER = Path('/dev/shm')",
    ],
}


@cache
def mentioned() -> dict[str, Mentions]:
    """What the project's own code mentions, by path."""
    return {path.as_posix(): mentions(tree) for path, tree in trees().items()}


def test_every_package_of_the_project_is_looked_at() -> None:
    found = {path.parent.name for path in ROOT.glob("*/*.py")} - {"tests", "benchmarks", "docs"}
    assert found == set(PACKAGES)


@pytest.mark.parametrize("look", LOOKS)
def test_only_what_is_written_down_is_exposed(look: str) -> None:
    is_so, known = LOOKS[look]
    assert {path for path, code in mentioned().items() if is_so(code)} == set(known)


@pytest.mark.parametrize(("look", "program"), [(look, program) for look in PLANTED for program in PLANTED[look]])
def test_what_is_added_is_noticed(look: str, program: str) -> None:
    is_so, _ = LOOKS[look]
    harmless = "import socket, json, tempfile\nwith tempfile.TemporaryDirectory() as own: pass"
    assert is_so(mentions(ast.parse(program)))
    assert not is_so(mentions(ast.parse(harmless)))

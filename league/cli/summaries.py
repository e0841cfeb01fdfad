"""One line about a command of another package, read from its source: importing it may load
anything.
"""

from __future__ import annotations

import ast
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path


def summary_of(module: str) -> str:
    """The text of ``SUMMARY = "..."`` in a module's source, else the first sentence of its
    docstring.

    "" when neither is there, or the source can't be found or read. Nothing is imported, packages
    neither.
    """
    file = _source(module)
    if file is None:
        return ""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return ""
    for node in tree.body:
        if (
            isinstance(node, ast.Assign)
            and [ast.unparse(target) for target in node.targets] == ["SUMMARY"]
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            return node.value.value.rstrip(".")
    return _first_sentence(ast.get_docstring(tree) or "")


def _source(module: str) -> Path | None:
    path: list[str] | None = None
    spec = None
    parts = module.split(".")
    for depth in range(1, len(parts) + 1):
        name = ".".join(parts[:depth])
        # A package installed to be edited is known to a finder of its own, which no path leads to.
        spec = find_spec(name) if depth == 1 else PathFinder.find_spec(name, path)
        if spec is None:
            return None
        path = list(spec.submodule_search_locations or [])
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return None
    return Path(spec.origin)


def _first_sentence(text: str) -> str:
    paragraph = " ".join(text.partition("\n\n")[0].split())
    sentence = paragraph.partition(". ")[0].rstrip(".")
    return sentence if len(sentence) <= 100 else ""

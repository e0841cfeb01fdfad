"""Mutants of a function: its source with one small thing changed, in the ways that mutation testing
names.

A comparison or a condition turned round, `and` for `or`, a number one larger, `+` for `-` and `*`
for `/`, nothing returned, a call, an assignment in place or a raise left out (DeMillo, Lipton and
Sayward 1978).
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import CodeType

_TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_SWAPPED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """The `number`th change of the function `name` ("Class.method") in the file `path`."""

    path: str
    name: str
    number: int

    def __str__(self) -> str:
        return f"{self.path}|{self.name}|{self.number}"

    @staticmethod
    def parse(text: str) -> Mutant:
        path, name, number = text.split("|")
        return Mutant(path, name, int(number))

    def tree(self) -> tuple[ast.Module, int, str]:
        """Its module, changed, the line and the kind of the change."""
        tree = ast.parse(Path(self.path).read_text())
        line, kind, change = _sites(functions(tree)[self.name])[self.number]
        change()
        return ast.fix_missing_locations(tree), line, kind

    def module(self) -> tuple[CodeType, int, str]:
        """Its module's code, the line and the kind of the change."""
        tree, line, kind = self.tree()
        return compile(tree, self.path, "exec"), line, kind

    def code(self) -> CodeType:
        """The function's code."""
        code = self.module()[0]
        for part in self.name.split("."):
            inner = (c for c in code.co_consts if isinstance(c, CodeType))
            code = next(c for c in inner if c.co_name == part)
        return code


def functions(tree: ast.Module) -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef]:
    """Functions and methods, not those within functions."""
    found = {}

    def walk(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found[prefix + node.name] = node
            elif isinstance(node, ast.ClassDef):
                walk(node.body, f"{prefix}{node.name}.")

    walk(tree.body, "")
    return found


def count(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """How many mutants it has."""
    return len(_sites(function))


def _sites(function):
    """Line, kind and the change itself, in the order of the source."""
    sites = []

    def expression(node):
        line = getattr(node, "lineno", function.lineno)
        if isinstance(node, ast.Compare) and type(node.ops[0]) in _TURNED:
            sites.append(
                (line, "compare", lambda: node.ops.__setitem__(0, _TURNED[type(node.ops[0])]()))
            )
        elif isinstance(node, ast.BoolOp):
            other = ast.And if isinstance(node.op, ast.Or) else ast.Or
            sites.append((line, "and/or", lambda: setattr(node, "op", other())))
        elif isinstance(node, ast.If | ast.While | ast.IfExp):
            sites.append(
                (line, "not", lambda: setattr(node, "test", ast.UnaryOp(ast.Not(), node.test)))
            )
        elif isinstance(node, ast.Return) and not _is_none(node.value):
            sites.append((line, "return", lambda: setattr(node, "value", ast.Constant(None))))
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
            value = not node.value if isinstance(node.value, bool) else node.value + 1
            sites.append((line, "constant", lambda: setattr(node, "value", value)))
        elif isinstance(node, ast.BinOp) and type(node.op) in _SWAPPED:
            sites.append((line, "operator", lambda: setattr(node, "op", _SWAPPED[type(node.op)]())))

    def statements(node):
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, None)
            for i, statement in enumerate(body if isinstance(body, list) else []):
                if _can_go(statement):
                    sites.append(
                        (statement.lineno, "drop", partial(body.__setitem__, i, ast.Pass()))
                    )

    def visit(node):
        expression(node)
        statements(node)
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    visit(child)

    body = ast.Module(function.body, [])
    statements(body)
    for statement in function.body:
        visit(statement)
    return sites


def _is_none(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and value.value is None)


def _can_go(statement: ast.stmt) -> bool:
    called = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call | ast.Await)
    return called or isinstance(statement, ast.AugAssign | ast.Raise)

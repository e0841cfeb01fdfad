"""What tests/mutation changes in a function, and that a process which a test starts gets it."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

MUTATION = Path(__file__).parents[1] / "mutation"
sys.path.append(str(MUTATION))
from mutants import Mutant, count, functions  # noqa: E402

SOURCE = '''
"""A module."""


def least(values: list[int], start: int = 7) -> int:
    best = start
    for value in values:
        if value < best and value:
            best = value
    note(best)
    return best


def note(value):
    return


class Account:
    def add(self, amount):
        self.total += amount + 1
        if amount < 0:
            raise ValueError
'''


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "accounts.py"
    path.write_text(SOURCE)
    return path


def changed(path: Path, name: str) -> dict[str, list[str]]:
    """By kind: the lines of each mutant that the unchanged source has not."""
    tree = ast.parse(SOURCE)
    before = ast.unparse(tree).splitlines()
    found: dict[str, list[str]] = {}
    for number in range(count(functions(tree)[name])):
        mutant = Mutant(str(path), name, number)
        code, _, kind = mutant.module()
        assert code.co_filename == str(path)
        after = ast.unparse(mutant.tree()[0]).splitlines()
        found.setdefault(kind, []).extend(line.strip() for line in after if line not in before)
    return found


def test_each_kind_of_change_is_made_once_where_it_can_be(module: Path) -> None:
    assert changed(module, "least") == {
        "drop": ["pass"],
        "not": ["if not (value < best and value):"],
        "and/or": ["if value < best or value:"],
        "compare": ["if value >= best and value:"],
        "return": ["return None"],
    }
    assert changed(module, "Account.add") == {
        "drop": ["pass", "pass"],
        "operator": ["self.total += amount - 1"],
        "constant": ["self.total += amount + 2", "if amount < 1:"],
        "not": ["if not amount < 0:"],
        "compare": ["if amount >= 0:"],
    }
    assert changed(module, "note") == {}  # None for None would be no change


def test_a_mutants_line_is_where_the_change_is(module: Path) -> None:
    lines = SOURCE.splitlines()
    number = next(n for n in range(9) if Mutant(str(module), "least", n).module()[2] == "compare")
    assert "value < best" in lines[Mutant(str(module), "least", number).module()[1] - 1]


def test_a_living_function_takes_its_code(module: Path) -> None:
    space: dict = {}
    exec(compile(SOURCE, str(module), "exec"), space)
    kinds = {Mutant(str(module), "least", n).module()[2]: n for n in range(5)}
    assert space["least"]([3, 5]) == 3
    space["least"].__code__ = Mutant(str(module), "least", kinds["compare"]).code()
    assert space["least"]([3, 5]) == 7
    assert space["least"]([9, 8]) == 9


def test_a_process_that_a_test_starts_imports_the_mutant(module: Path) -> None:
    kinds = {Mutant(str(module), "least", n).module()[2]: n for n in range(5)}

    def said(**environment: str) -> str:
        command = [sys.executable, "-c", "import accounts; print(accounts.least([3, 5]))"]
        path = f"{MUTATION / 'hook'}:{module.parent}"
        environment = {**os.environ, "PYTHONPATH": path, **environment}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    assert said() == "3"
    assert said(KUMITE_MUTANT=str(Mutant(str(module), "least", kinds["return"]))) == "None"
    assert said() == "3"  # nothing of it was kept
    calls = module.parent / "calls"
    said(
        KUMITE_CALLS=str(calls),
        KUMITE_ROOT=str(module.parent),
        PYTEST_CURRENT_TEST="tests/a.py::b (call)",
    )
    assert calls.read_text().splitlines()[-2:] == [
        f"tests/a.py::b\t{module}\tleast",
        f"tests/a.py::b\t{module}\tnote",
    ]

"""Which tests can fail: each is run with mutants of the functions that it calls, until it is red
once.

    python tests/mutation/red.py RECORD tests/unit tests/service [--tries 30] [--minutes 60]

Mutation testing tools tell which mutants no test notices; this tells which tests notice no mutant.
It runs the tests once unchanged and notes what each calls, then takes a test that has not been red,
the function it calls that the fewest others call, and one of that function's mutants, and runs all
such tests that call it. Nothing is written to the source: a forked process gets the function's new
code, and processes which a test starts import it (hook/sitecustomize.py). RECORD, JSON lines, has
the mutant and the message that each test was red with; a second start goes on with the others.
Functions compiled by numba are left alone.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import select
import signal
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest
from mutants import Mutant, count, functions

ROOT = Path(__file__).parents[2]
HOOK = Path(__file__).parent / "hook"
PACKAGES = ("league", "learner", "matchmaker", "evaluator")
PYTEST = ["-q", "-p", "no:cacheprovider", "--timeout", "60"]
WRAPPERS = ("__wrapped__", "__func__", "fget", "func")
Function = tuple[str, str]
"""A file and a qualified name."""


class Watcher:
    """A pytest plugin: which functions a test calls in its own process, and which tests are red."""

    def __init__(self, out: Any, calls: bool) -> None:
        self._out, self._calls = out, calls
        self._known: dict[str, bool] = {}
        self._now: set[Function] = set()

    def _called(self, frame: Any, event: str, _: Any) -> None:
        if event == "call":
            code = frame.f_code
            ours = self._known.get(code.co_filename)
            if ours is None:
                ours = self._known[code.co_filename] = is_ours(code.co_filename)
            if ours:
                self._now.add((code.co_filename, code.co_qualname))

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Any:
        if self._calls:
            self._now = set()
            threading.setprofile(self._called)
            sys.setprofile(self._called)
        yield
        sys.setprofile(None)
        if self._calls:
            self._say(test=item.nodeid, calls=sorted(self._now))

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            self._say(red=report.nodeid, why=crash.message.split("\n")[0][:200] if crash else "")

    def _say(self, **fields: Any) -> None:
        self._out.write(json.dumps(fields) + "\n")
        self._out.flush()


def is_ours(file: str) -> bool:
    """A file of the product that can be imported."""
    packages = tuple(f"{ROOT}/{package}/" for package in PACKAGES)
    return file.startswith(packages) and not file.endswith("__main__.py")


def forked(work: Callable[[Any], None], seconds: float) -> list[dict[str, Any]]:
    """What a forked process says, in JSON lines, within so many seconds; its whole session is
    gone then.
    """
    reads, writes = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        quiet = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(quiet, stream)
        try:
            with os.fdopen(writes, "w") as out:
                work(out)
        finally:
            os._exit(0)
    os.close(writes)
    said = _read(reads, time.monotonic() + seconds)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return [json.loads(line) for line in said.splitlines() if line.endswith("}")]


def _read(reads: int, until: float) -> str:
    said = b""
    while select.select([reads], [], [], max(0.0, until - time.monotonic()))[0]:
        if not (piece := os.read(reads, 1 << 16)):
            break
        said += piece
    os.close(reads)
    return said.decode()


def calls_of(tests: list[str], minutes: float) -> tuple[dict[str, set[Function]], set[str]]:
    """What each test calls, and those that are red unchanged.

    What a process calls is laid to all tests of the file that started it: they may share it.
    """
    with tempfile.NamedTemporaryFile() as others:

        def work(out: Any) -> None:
            os.environ.update(
                KUMITE_CALLS=others.name, KUMITE_ROOT=f"{ROOT}/", PYTHONPATH=str(HOOK)
            )
            pytest.main([*PYTEST, "--timeout", "300", *tests], plugins=[Watcher(out, calls=True)])

        said = forked(work, 60 * minutes)
        by_file: dict[str, set[Function]] = defaultdict(set)
        for line in Path(others.name).read_text().splitlines():
            test, file, name = line.split("\t")
            if is_ours(file):
                by_file[test.split("::")[0]].add((file, name))
    calls = {s["test"]: {tuple(f) for f in s["calls"]} for s in said if "test" in s}
    for test, called in calls.items():
        called |= by_file[test.split("::")[0]]
    return calls, {s["red"] for s in said if "red" in s}


def module_of(path: str) -> ModuleType:
    return import_module(".".join(Path(path).relative_to(ROOT).with_suffix("").parts))


def function_of(mutant: Mutant) -> FunctionType | None:
    """The living function, out of its wrappers; none if something else stands in its place."""
    found: Any = module_of(mutant.path)
    for part in mutant.name.split("."):
        found = vars(found).get(part) if hasattr(found, "__dict__") else None
    while wrapped := [inner for name in WRAPPERS if (inner := getattr(found, name, None))]:
        found = wrapped[0]
    return found if isinstance(found, FunctionType) else None


def reds(mutant: Mutant, tests: list[str], seconds: float) -> dict[str, str]:
    """Those of the tests that are red with it, and their message."""

    def work(out: Any) -> None:
        os.environ.update(KUMITE_MUTANT=str(mutant), PYTHONPATH=str(HOOK))
        if function := function_of(mutant):
            function.__code__ = mutant.code()
        pytest.main([*PYTEST, *tests], plugins=[Watcher(out, calls=False)])

    return {s["red"]: s["why"] for s in forked(work, seconds)}


class Search:
    """Mutants still to be tried, a function at a time."""

    def __init__(self, calls: dict[str, set[Function]]) -> None:
        self.calls = {t: {(f, n.split(".<locals>")[0]) for f, n in c} for t, c in calls.items()}
        self.users: dict[Function, set[str]] = defaultdict(set)
        for test, called in self.calls.items():
            for function in called:
                self.users[function].add(test)
        self._untried = {function: self._mutants(function) for function in self.users}

    @staticmethod
    def _mutants(function: Function) -> list[Mutant]:
        file, name = function
        node = functions(ast.parse(Path(file).read_text())).get(name)
        if node is None or any("jit" in ast.dump(d) for d in node.decorator_list):
            return []
        found = [Mutant(file, name, i) for i in range(count(node))]
        random.Random(name).shuffle(found)
        return found

    def next(self, test: str, asked: int) -> Mutant | None:
        """A mutant of what the fewest tests call; a further one is another function's."""
        own = sorted(
            (f for f in self.calls[test] if self._untried[f]), key=lambda f: (len(self.users[f]), f)
        )
        return self._untried[own[asked % min(len(own), 8)]].pop() if own else None


def search(known: Search, left: set[str], options: argparse.Namespace) -> None:
    """Tries mutants until every test was red, had its tries, or the time is over."""
    end = time.monotonic() + 60 * options.minutes
    tries: dict[str, int] = defaultdict(int)
    for test in sorted(left, key=lambda t: len(known.calls[t])):
        while test in left and tries[test] < options.tries and time.monotonic() < end:
            mutant = known.next(test, tries[test])
            if mutant is None:
                break
            users = known.users[mutant.path, mutant.name] & left - {test}
            near = sorted(
                users, key=lambda t: (t.split("::")[0] != test.split("::")[0], len(known.calls[t]))
            )
            tests = [test, *near[: options.most - 1]]
            for each in tests:
                tries[each] += 1
            found = reds(mutant, sorted(tests), 60 + 10 * len(tests))
            _, line, kind = mutant.module()
            word = f"{Path(mutant.path).relative_to(ROOT)}:{line} {mutant.name} {kind}"
            with options.record.open("a") as file:
                for red in left & found.keys():
                    file.write(json.dumps({"red": red, "mutant": word, "why": found[red]}) + "\n")
            left.difference_update(found)
            print(f"{word}: {len(found)} of {len(tests)} red; {len(left)} left", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("record", type=Path)
    parser.add_argument("tests", nargs="+", help="as pytest takes them")
    parser.add_argument("--tries", type=int, default=30, help="mutants a test at most")
    parser.add_argument("--most", type=int, default=30, help="tests a mutant at most")
    parser.add_argument("--minutes", type=float, default=60)
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    for package in PACKAGES:
        import_module(package)
    calls, already = calls_of(options.tests, options.minutes)
    lines = options.record.read_text().splitlines() if options.record.exists() else []
    for file in {file for called in calls.values() for file, _ in called}:
        module_of(file)  # once, and not in every fork
    before = {json.loads(line)["red"] for line in lines}
    left = calls.keys() - already - before
    print(
        f"{len(calls)} tests; {len(already)} red unchanged {sorted(already)}; {len(left)} to be seen red",
        flush=True,
    )
    search(Search(calls), left, options)
    print(f"{len(left)} never red", *sorted(left), sep="\n")


if __name__ == "__main__":
    main()

"""``kumite``: the programs of an installed package, as ``bin/`` has them in a clone."""

from __future__ import annotations

import runpy
import sys

PROGRAMS = {
    "start": ("league.cluster.main", "trains a league in one terminal view, as bin/start-league"),
    "league": ("league.cli.main", "asks a league, as bin/league"),
    "learner": ("learner", "adds a learner to a running league, as bin/learner"),
    "matchmaker": ("matchmaker", "serves one league, as bin/matchmaker"),
    "evaluator": ("evaluator", "plays a league's clean matches, as bin/evaluator"),
}
"""By the word after ``kumite``: its module, and what it does."""


def main() -> int:
    """Runs the program that the first argument names, with the rest of the arguments."""
    name = sys.argv[1] if len(sys.argv) > 1 else "--help"
    if name in PROGRAMS:
        sys.argv[1:] = sys.argv[2:]
        runpy.run_module(PROGRAMS[name][0], run_name="__main__", alter_sys=True)
        return 0
    is_asked = name in ("-h", "--help")
    lines = [f"  kumite {word:<12}{what}" for word, (_, what) in PROGRAMS.items()]
    print("\n".join(["usage:", *lines]), file=sys.stdout if is_asked else sys.stderr)
    if not is_asked:
        print(f"kumite: there is no program {name!r}", file=sys.stderr)
    return 0 if is_asked else 2

"""Defines ``kumite``, the command of an installed package. It runs the programs that a clone of the
repository has in ``bin/``.
"""

from __future__ import annotations

import os
import sys

PROGRAMS = {
    "start": ("league.cluster.main", "trains a league in one terminal view, as bin/start-league"),
    "league": ("league", "asks a league, as bin/league"),
    "learner": ("learner", "adds a learner to a running league, as bin/learner"),
    "matchmaker": ("matchmaker", "serves one league, as bin/matchmaker"),
    "evaluator": ("evaluator", "plays a league's clean matches, as bin/evaluator"),
}
"""Each program's module and description, by the word after ``kumite``."""


def main() -> int:
    """Runs the program that the first argument names, with the other arguments."""
    name = sys.argv[1] if len(sys.argv) > 1 else "--help"
    if name in PROGRAMS:  # sets the environment as the launchers in bin/ do
        own = {**os.environ, "PYTHONPATH": "", "PYTHONSAFEPATH": "1"}
        own["KUMITE_PATH"] = os.environ.get("PYTHONPATH") or os.environ.get("KUMITE_PATH", "")
        words = [sys.executable, "-m", PROGRAMS[name][0], *sys.argv[2:]]
        os.execve(sys.executable, words, own)
    is_asked = name in ("-h", "--help")
    lines = [f"  kumite {word:<12}{what}" for word, (_, what) in PROGRAMS.items()]
    print("\n".join(["usage:", *lines]), file=sys.stdout if is_asked else sys.stderr)
    if not is_asked:
        print(f"kumite: there is no program {name!r}", file=sys.stderr)
    return 0 if is_asked else 2

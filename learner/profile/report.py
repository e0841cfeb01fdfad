"""What a profile prints and writes: tables, the bottleneck, what was not measured, the preset."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from league.cli.output import print_pairs, print_table, say
from league.settings.base import Sections, resolve
from league.settings.file import dump_toml
from learner.profile.sweep import AXES, CHANGES_LEARNING, Changes, Row, Spread

PARTS = ("part", "steps_per_second", "lowest", "highest", "share")
SPEEDS = ("steps_per_second", "lowest", "highest", "per_cpu_second", "cpu_cores", "memory_mib")
MIB = 1 << 20
WIDTH = 100
STARVED = 0.85
"""Below this many cores a process on the CPU waits for something: a core, a worker, a sleep."""
ADVICE_CPU = {
    "game": "more matches share each call's fixed cost (learner.matches); a game with its own "
    "workers takes more of them in game.options",
    "opponents": "many different snapshots are bound by reading their weights: more matches put "
    "several seats on each (learner.matches), as do more matches of a draw "
    "(matchmaker.matches_per_draw), and fewer snapshots in the mix or in the league "
    "(matchmaker.mixes, matchmaker.max_saved) leave fewer to read",
    "inference": "more matches make larger batches (learner.matches), a smaller agent is faster "
    "(agent.size)",
    "learning": "fewer passes (learner.n_epochs), a smaller agent (agent.size) or a GPU; "
    "minibatches and threads (learner.batch_size, learner.threads) are what --sweep tries",
    "references": "fewer at once (regularisation.portfolio_size)",
    "other": "bookkeeping that no counter claims: matches that begin and end, weights that are "
    "loaded, advantages; longer matches and larger rollouts have less of it",
}
ADVICE_GPU = {
    **ADVICE_CPU,
    "inference": "one small forward after the other leaves a GPU idle: more matches "
    "(learner.matches)",
    "learning": "larger minibatches (learner.batch_size) and lower precision fill a GPU better; "
    "fewer passes (learner.n_epochs) or a smaller agent (agent.size) leave less to do",
}


def bottleneck(row: Row, facts: Mapping[str, Any]) -> str:
    """What takes the most time and what to change, in one or two sentences."""
    kind, busy = row.slowest(), row.cpu_cores().median
    on_cpu = facts["device"] == "cpu"
    advice = (ADVICE_CPU if on_cpu else ADVICE_GPU)[kind]
    said = f"{kind} takes {row.shares()[kind]:.0%} of the time: {advice}."
    if on_cpu and busy < STARVED:
        said += (
            f" The process kept only {busy:.2f} of a core busy: the rest of the time it waited for "
            f"a core that other work held (load average {facts['load_average']:.1f} on "
            f"{facts['cores']} cores at the start), for processes of the game, or in sleep."
        )
    return said


def doubt(best: Row, before: Row | None) -> str:
    """A warning when the recommended row's lead is no larger than the spread, else ""."""
    if before is None or before is best or not before.counts:
        return ""
    ours, theirs = best.steps_per_second(), before.steps_per_second()
    if ours.lowest > theirs.highest:
        return ""
    return (
        f"the lead over the unchanged settings is within the spread ({ours.lowest:,.0f} to "
        f"{ours.highest:,.0f} against {theirs.lowest:,.0f} to {theirs.highest:,.0f}): measure "
        "again on a quiet machine, or with more --seconds, before you rely on it"
    )


def not_measured(row: Row, facts: Mapping[str, Any]) -> list[str]:
    """What a run does that was not measured, each in a sentence."""
    ended = sum(burst.matches_ended for burst in row.bursts)
    said = [
        "the matchmaker and the evaluator, and their share of the cores: no league runs here, "
        "matches are drawn from the mix in this process",
        "files, snapshots and checkpoints between updates",
        "play as it becomes: fresh networks play, and matches last as long as theirs do "
        f"({ended} ended in the bursts)",
    ]
    if facts["device"] != "cpu":
        said.append("each part's own time on the GPU: work is queued there, see --trace")
    elif facts["cpu_ranks"] > 1:
        said.append(
            f"several ranks: one process was measured, and a run learns in {facts['cpu_ranks']} on "
            "the CPU if the cores are there"
        )
    return said


def print_row(row: Row, title: str) -> None:
    """Prints each part's speed and share, then what the process took of the machine."""
    shares = row.shares()
    speeds = {kind: row.part_steps_per_second(kind) for kind in shares}
    lines = [[kind, *_figures(speeds[kind]), f"{shares[kind]:.1%}"] for kind in shares]
    lines.append(["end to end", *_figures(row.steps_per_second()), f"{sum(shares.values()):.1%}"])
    columns = [name if name == "part" else f"{name}#" for name in PARTS]
    caption = f"steps a second, {len(row.bursts)} bursts: median, least, most"
    print_table(title, columns, lines, caption=caption)
    print()
    cpu, by_cpu = row.cpu_cores(), row.steps_per_cpu_second()
    busy = f"{cpu.median:.2f} cores busy ({cpu.lowest:.2f} to {cpu.highest:.2f})"
    pairs = [("cpu", f"{busy}, {by_cpu.median:,.0f} steps a second of CPU time")]
    for name, size in row.memory.items():
        pairs.append((name.removesuffix("_bytes").replace("_", " "), f"{size / MIB:,.0f} MiB"))
    if row.gpu_busy_share is not None:
        pairs.append(("gpu busy", f"{row.gpu_busy_share:.0%} of the time, in the trace"))
    print_pairs(pairs)


def _figures(speed: Spread | None) -> list[str]:
    return ["", "", ""] if speed is None else [f"{value:,.0f}" for value in speed]


def print_sweep(rows: Sequence[Row], best: Row, own: Changes, left_out: Sequence[str]) -> None:
    """Prints all configurations, the fastest first, those that failed last."""
    ordered = sorted(rows, key=lambda row: -row.steps_per_second().median if row.counts else 0.0)
    columns = [*(f"{name}#" for name in (*AXES, *SPEEDS)), "slowest", "note"]
    cells = []
    for row in ordered:
        measured = [""] * (len(SPEEDS) + 1)
        if row.counts:
            memory = row.memory.get("peak_gpu_reserved_bytes", row.memory["peak_resident_bytes"])
            measured = [
                *_figures(row.steps_per_second()),
                f"{row.steps_per_cpu_second().median:,.0f}",
                f"{row.cpu_cores().median:.2f}",
                f"{memory / MIB:,.0f}",
                f"{row.slowest()} {row.shares()[row.slowest()]:.0%}",
            ]
        notes = ["recommended"] if row is best else []
        notes += ["unchanged"] if dict(row.changes) == dict(own) else []
        notes += [f"failed: {row.failure}"] if row.failure else []
        cells.append([*(str(row.changes[axis]) for axis in AXES), *measured, ", ".join(notes)])
    caption = f"{' and '.join(CHANGES_LEARNING)} change what is learnt, too"
    print_table("Sweep", columns, cells, caption=caption)
    for reason in left_out:
        say(f"left out: {reason}")


def preset_text(
    base: str | None,
    sections: Sections,
    own: Changes,
    best: Row,
    rows: Sequence[Row],
    facts: Mapping[str, Any],
) -> str:
    """A settings file for `bin/start-league --config` with what a sweep recommends.

    It extends the preset `base` by all in which `sections` differ from it, and by `best`'s values.
    """
    below = resolve(base, environment={})
    wanted = {**sections, "learner": {**sections["learner"], **best.changes}}
    changed = {
        section: {
            key: value
            for key, value in values.items()
            if value != below[section][key] or (section == "learner" and key in best.changes)
        }
        for section, values in wanted.items()
    }
    body = dump_toml({section: values for section, values in changed.items() if values}, "")
    middle, least, most = _figures(best.steps_per_second())
    where = facts["gpu"] or f"{facts['processor']}, {facts['cores']} cores"
    differ = [name for name in CHANGES_LEARNING if best.changes.get(name) != own[name]]
    said = (
        f"bin/league profile --sweep wrote this: {base or 'the settings given'} with the fastest "
        f"of {len(rows)} configurations: {middle} steps/s ({least} to {most}) on {where}. "
    )
    if differ:
        said += (
            f"{' and '.join(differ)} differ and change what a step teaches, not only the speed: "
            "watch the first minutes' win rates; learner.learning_rate may want another value."
        )
    else:
        said += "Nothing here changes what a step teaches: only the speed."
    comment = "".join(f"# {line}\n" for line in textwrap.wrap(said, WIDTH - 2))
    extends = f'extends = "{base}"\n\n' if base else ""
    return f"{comment}\n{extends}{body.lstrip()}"

"""What a profile prints and writes: tables, the bottleneck, what was not measured, the preset."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from league.cli.output import is_terminal, print_pairs, print_table, say
from league.settings.base import Sections, resolve
from league.settings.file import dump_toml
from learner.profile.sweep import AXES, CHANGES_LEARNING, CLOSE, Changes, Row, Spread

PARTS = ("part", "steps_per_second", "lowest", "highest", "share")
SPEEDS = ("steps_per_second", "lowest", "highest", "spread")
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
        load = facts["load_average"]
        said += (
            f" The process kept only {busy:.2f} of a core busy: the rest of the time it waited for "
            "a core that other work held"
            + (f" (load average {load[0]:.1f} on {facts['cores']} cores at the start)" * bool(load))
            + ", for processes of the game, or in sleep."
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


def not_measured(
    row: Row, facts: Mapping[str, Any], made: int, whole_league: int, cpu_ranks: int
) -> list[str]:
    """What a run does that was not measured, each in a sentence.

    Args:
        row: the row that is reported.
        facts: of the machine.
        made, whole_league: snapshots that were made, and those of a whole run.
        cpu_ranks: processes in which a run learns on a CPU.
    """
    ended = sum(burst.matches_ended for burst in row.bursts)
    said = [
        "the matchmaker and the evaluator, and their share of the cores: no league runs here, "
        "matches are drawn from the mix in this process",
        "files, snapshots and checkpoints between updates",
        "play as it becomes: fresh networks play, and matches last as long as theirs do "
        f"({ended} ended in the bursts)",
    ]
    if made < whole_league:
        said.append(
            f"the whole league: {made} of its {whole_league} snapshots were made, because of their "
            "files' size"
        )
    if "references" in row.bursts[0].parts:
        said.append("the portfolio: one reference plays here, a long run comes to hold several")
    if not row.whole:
        said.append("whole updates: one takes longer than a burst, so its beginning was scaled up")
    if facts["device"] != "cpu":
        said.append("each part's own time on the GPU: work is queued there, see --trace")
        return said
    said.append("a GPU: it ran on the CPU")
    if cpu_ranks > 1:
        said.append(
            f"several ranks: one process was measured, and a run learns in {cpu_ranks} on the CPU "
            "if the cores are there"
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
    if speed is None:
        return ["", "", ""]
    return [f"{value:,.0f}" for value in (speed.median, speed.lowest, speed.highest)]


def print_sweep(rows: Sequence[Row], best: Row, own: Changes, left_out: Sequence[str]) -> None:
    """Prints all configurations, the fastest first, those that failed last."""
    ordered = sorted(rows, key=lambda row: -row.steps_per_second().median if row.counts else 0.0)
    numbers = (*AXES, *SPEEDS, "per_cpu_second", "cpu_cores", "memory_mib")
    columns = [*(f"{name}#" for name in numbers), "slowest", "note"]
    caption = f"{' and '.join(CHANGES_LEARNING)} change what is learnt, too"
    cells = [[*_sweep_cells(row), _note(row, best, own)] for row in ordered]
    print_table("Sweep", columns, cells, caption=caption)
    for reason in left_out:
        say(f"left out: {reason}")


def _speed_cells(row: Row) -> list[str]:
    settings = [str(row.changes[axis]) for axis in AXES]
    if not row.counts:
        return [*settings, "", "", "", ""]
    speed = row.steps_per_second()
    return [*settings, *_figures(speed), f"{speed.relative:.0%}"]


def _sweep_cells(row: Row) -> list[str]:
    if not row.counts:
        return [*_speed_cells(row), "", "", "", ""]
    memory = row.memory.get("peak_gpu_reserved_bytes", row.memory["peak_resident_bytes"])
    return [
        *_speed_cells(row),
        f"{row.steps_per_cpu_second().median:,.0f}",
        f"{row.cpu_cores().median:.2f}",
        f"{memory / MIB:,.0f}",
        f"{row.slowest()} {row.shares()[row.slowest()]:.0%}",
    ]


def _note(row: Row, best: Row, own: Changes) -> str:
    notes = ["recommended"] if row is best else []
    notes += ["as it is set"] if dict(row.changes) == dict(own) else []
    notes += [f"failed: {row.failure}"] if row.failure else []
    return ", ".join(notes)


def print_sentences(label: str, sentences: Sequence[str]) -> None:
    """Prints sentences with a label, wrapped."""
    for sentence in sentences:
        print(textwrap.fill(f"{label}: {sentence}", WIDTH, subsequent_indent="  "))


@contextmanager
def progress(rounds: int, is_sweep: bool) -> Iterator[Callable[[list[Row]], None]]:
    """Shows a sweep's rows while they grow: a table on a terminal, a line each elsewhere."""
    seen = 0
    if not is_sweep:
        yield lambda rows: None
    elif is_terminal():
        from rich.live import Live

        with Live(transient=True, refresh_per_second=4) as live:

            def draw(rows: list[Row]) -> None:
                nonlocal seen
                seen += 1
                live.update(_drawn(rows, f"Measurement {seen} of at most {len(rows) * rounds}"))

            yield draw
    else:

        def report(rows: list[Row]) -> None:
            nonlocal seen
            seen += 1
            known, failed = sum(row.counts for row in rows), sum(bool(row.failure) for row in rows)
            say(
                f"measurement {seen} of at most {len(rows) * rounds}: {known} configurations "
                f"known, {failed} failed"
            )

        yield report


def _drawn(rows: Sequence[Row], title: str) -> Any:
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for name in (*AXES, *SPEEDS, "bursts"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*_speed_cells(row), "failed" if row.failure else str(len(row.bursts)))
    return table


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
    extends = f'extends = "{base}"\n\n' if base else ""
    return f"{_comments(base, own, best, rows, facts)}\n{extends}{body.lstrip()}"


def _comments(
    base: str | None, own: Changes, best: Row, rows: Sequence[Row], facts: Mapping[str, Any]
) -> str:
    speed = best.steps_per_second()
    where = facts["gpu"] or f"{facts['processor']}, {facts['cores']} cores"
    paragraphs = [
        f"bin/league profile --sweep wrote this: {base or 'the settings given'} with the values of "
        f"[learner] that were fastest of {len(rows)} measured. Use it: bin/start-league --config "
        "THIS_FILE",
        f"Measured: {speed.median:,.0f} steps/s end to end, {speed.lowest:,.0f} to "
        f"{speed.highest:,.0f} in {len(best.bursts)} bursts, on {where}. Configurations within "
        f"{CLOSE:.0%} count as equal: of those, the one that changes least is here.",
    ]
    before = next((row for row in rows if row.counts and dict(row.changes) == dict(own)), None)
    if before is not None and before is not best:
        values = ", ".join(f"{name} = {value}" for name, value in own.items())
        middle, least, most = _figures(before.steps_per_second())
        paragraphs.append(f"In the same minutes {values}: {middle} ({least} to {most}).")
        unsure = doubt(best, before)
        paragraphs += [f"{unsure[0].upper()}{unsure[1:]}."] if unsure else []
    changed = [name for name in CHANGES_LEARNING if best.changes.get(name) != own[name]]
    paragraphs.append(
        f"Of these {' and '.join(changed)} differ and change what a step teaches, not only the "
        "speed: rollouts, and the optimizer's steps in each, are of another size. Watch the win "
        "rates of the first minutes; learner.learning_rate may want another value."
        if changed
        else "Nothing here changes what a step teaches: only the speed."
    )
    return "".join(f"# {line}\n" for text in paragraphs for line in textwrap.wrap(text, WIDTH - 2))

"""Shows a diagnosis: drawn on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from learner.doctor.findings import Cause, Diagnosis, Finding, Verdict

MARKS = {Verdict.OK: "✓", Verdict.WARNING: "!", Verdict.FAILURE: "✗", Verdict.UNKNOWN: "·"}
COLOURS = {
    Verdict.OK: "green",
    Verdict.WARNING: "yellow",
    Verdict.FAILURE: "bright_red",
    Verdict.UNKNOWN: "grey58",
}
BARS = "▁▂▃▄▅▆▇█"


def show(diagnosis: Diagnosis) -> None:
    """Prints the report to stdout."""
    if sys.stdout.isatty():
        Console(highlight=False).print(drawn(diagnosis))
    else:
        print("\n".join(plain(diagnosis)))


def headline(diagnosis: Diagnosis) -> str:
    """«1 failure, 2 warnings», or «healthy»."""
    counts = {
        verdict: sum(finding.verdict is verdict for finding in diagnosis.findings)
        for verdict in (Verdict.FAILURE, Verdict.WARNING)
    }
    words = [f"{count} {verdict}{'s' * (count > 1)}" for verdict, count in counts.items() if count]
    return ", ".join(words) or "healthy"


def drawn(diagnosis: Diagnosis) -> RenderableType:
    """The report for a terminal: verdict, systems, a line for each reason, causes last."""
    title = Text.assemble(
        (" league doctor ", "bold black on white"),
        f"  {diagnosis.subject}  ",
        (headline(diagnosis), f"bold {COLOURS[diagnosis.verdict]}"),
        (f"  {diagnosis.seconds:.0f} s", "grey58"),
    )
    systems = Text(" ").join(
        Text(f"{MARKS[verdict]}{name}", COLOURS[verdict])
        for name, verdict in diagnosis.systems().items()
    )
    parts: list[RenderableType] = [title, systems, _table(diagnosis.findings)]
    if diagnosis.curve:
        parts.append(
            Text(f"minimal agent, reward of a match: {curve_line(diagnosis.curve)}", "cyan")
        )
    parts += [_cause(number, cause) for number, cause in enumerate(diagnosis.causes, 1)]
    return Group(*parts)


def _table(findings: tuple[Finding, ...]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 1), pad_edge=False, expand=True)
    table.add_column(width=1)
    table.add_column(width=2, justify="right")
    table.add_column(width=max(len(finding.reason.title) for finding in findings), no_wrap=True)
    table.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    for finding in findings:
        colour = COLOURS[finding.verdict]
        table.add_row(
            Text(MARKS[finding.verdict], f"bold {colour}"),
            Text(finding.key, "grey58"),
            Text(finding.reason.title, f"bold {colour}" if finding.verdict.is_bad else ""),
            Text(finding.measured, colour if finding.verdict.is_bad else "grey62"),
        )
    return table


def _cause(number: int, cause: Cause) -> RenderableType:
    """One cause with its fix and what follows from it."""
    finding = cause.finding
    colour = COLOURS[finding.verdict]
    text = Text.assemble(
        (f"\n{number}. {finding.reason.title}", f"bold {colour}"),
        (f" (reason {finding.key}, {finding.verdict})", colour),
        ("\nmeasured  ", "grey58"),
        finding.measured,
        ("\nfix       ", "grey58"),
        (finding.fix, "bold"),
    )
    if cause.consequences:
        named = ", ".join(f"{one.reason.title} ({one.key})" for one in cause.consequences)
        text.append("\nfollows   ", "grey58")
        text.append(named)
    return Padding(text, (0, 0, 0, 1))


def curve_line(values: tuple[float, ...], width: int = 48) -> str:
    """Values as a line of bars, between the first and the last in figures."""
    per_bar = max(1, -(-len(values) // width))
    parts = [values[i : i + per_bar] for i in range(0, len(values), per_bar)]
    means = [sum(part) / len(part) for part in parts]
    least, span = min(means), max(max(means) - min(means), 1e-12)
    bars = "".join(BARS[round((len(BARS) - 1) * (mean - least) / span)] for mean in means)
    return f"{means[0]:.3g} {bars} {means[-1]:.3g}"


def plain(diagnosis: Diagnosis) -> list[str]:
    """Lines for a log or another program: tab-separated findings, then causes."""
    lines = [f"{diagnosis.subject}: {headline(diagnosis)} ({diagnosis.seconds:.0f} s)"]
    lines += [f"system\t{name}\t{verdict}" for name, verdict in diagnosis.systems().items()]
    lines += ["reason\ttitle\tverdict\tmeasured"]
    lines += [
        f"{one.key}\t{one.reason.title}\t{one.verdict}\t{one.measured}"
        for one in diagnosis.findings
    ]
    if diagnosis.curve:
        lines.append(f"minimal agent, reward of a match: {curve_line(diagnosis.curve)}")
    for cause in diagnosis.causes:
        lines.append(f"{cause.finding.verdict}: {cause.finding.reason.title} ({cause.finding.key})")
        lines.append(f"  measured: {cause.finding.measured}")
        lines.append(f"  fix: {cause.finding.fix}")
        lines += [f"  follows: {one.reason.title} ({one.key})" for one in cause.consequences]
    return lines

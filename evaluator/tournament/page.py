"""Writes the results of a tournament: a page, tables, and films of some matches."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from importlib.metadata import version
from itertools import groupby
from pathlib import Path

from markupsafe import Markup

from evaluator.tournament.formats import Encounter, Format
from evaluator.tournament.playing import REPLAYS, Played, by_encounter
from evaluator.tournament.standings import (
    Outcome,
    Standing,
    as_csv,
    match_rows,
    results_json,
    standing_rows,
)
from league.console.text import span, when
from league.players import PayoffCell
from league.replay import load_replay
from league.runs.files import write_whole
from league.views.film import write_film
from league.views.html import Text, joined, page, section, table, tag, text
from league.views.report import make_folder

FILMS = "films"
FILM = Markup('<a href="{}/{}.html">film</a>')
FORMATS = {
    Format.ROUND_ROBIN: "Everybody meets everybody in each round. Ranked by points: a win is 1, a "
    "draw ½.",
    Format.SWISS: "Entrants meet others with as many points. Ranked by points of encounters, then "
    "by those of the opponents (Buchholz).",
    Format.DOUBLE_ELIMINATION: "Who loses two encounters is out. Ranked by the last encounter. "
    "Points are encounters won.",
}
RULES = (
    "Each seed is played twice, with swapped seats, and all pairs of a round play the same seeds. "
    "An entrant that crashes loses the match. A late decision repeats the last keys. Elo is fitted "
    "to all matches and has a 95 % interval. The mean entrant has 1500."
)


def write_results(outcome: Outcome, films: int, show: Callable[[str], None]) -> Path:
    """Writes ``index.html``, ``results.json``, ``standings.csv``, ``matches.csv`` and films.

    Args:
        outcome: the tournament.
        films: the largest number of films.
        show: receives the progress.

    Returns:
        The path of the page.
    """
    folder = outcome.tournament.folder
    write_whole(folder / "results.json", results_json(outcome))
    write_whole(folder / "standings.csv", as_csv(standing_rows(outcome)))
    write_whole(folder / "matches.csv", as_csv(match_rows(outcome)))
    make_folder(folder / FILMS)
    own = outcome.tournament.settings
    for number, match in enumerate(_filmed(outcome)[:films], 1):
        show(f"{number} films")
        path = folder / FILMS / f"{match.match_id}.html"
        if not path.exists():
            replay = load_replay(folder / REPLAYS / f"{match.match_id}.replay", lambda: own)
            write_film(path, replay)
    write_whole(folder / "index.html", render(outcome))
    return folder / "index.html"


def _filmed(outcome: Outcome) -> list[Played]:
    """Returns the last match of each pair, the best pairs first."""
    last = {match.key[1:]: match for match in outcome.tournament.matches if match.match_id}
    rows = _rows(outcome)
    return sorted(last.values(), key=lambda one: sorted(rows[number] for number in one.key[1:]))


def _rows(outcome: Outcome) -> list[int]:
    """Returns each entrant's row of the standings, from 0 on. Entrants may share a rank."""
    rows = {one.entrant: row for row, one in enumerate(outcome.standings)}
    return [rows[name] for name in outcome.names]


def render(outcome: Outcome) -> str:
    """Returns the page, which has no scripts and loads nothing. Only the links to replays, films
    and tables need the other files.
    """
    plan, settings = outcome.tournament.plan, outcome.tournament.settings
    spec, matches = settings.spec(), outcome.tournament.matches
    facts = {
        "won": ", ".join(one.entrant for one in outcome.standings if one.rank == 1),
        "entrants": str(len(outcome.standings)),
        "matches": f"{len(matches):,}",
        "seconds a match": f"{spec.max_frames / spec.frames_per_second:g}",
        "crashes": str(sum(one.crashes for one in outcome.standings)),
    }
    title = f"{plan.form.value.replace('-', ' ').capitalize()} of {len(outcome.names)}"
    links = [
        Markup('<a href="{}">{}</a>').format(name, name)
        for name in ("standings.csv", "matches.csv", "results.json")
    ]
    words = joined([f"{FORMATS[plan.form]} {outcome.lead}. Files: ", joined(links, ", ")])
    sections = [
        section("Standings", _standings(outcome.standings), words=words),
        _bracket(outcome) if plan.form is not Format.ROUND_ROBIN else Markup(""),
        _cross_table(outcome),
        _failures(outcome),
        _matches(outcome),
        section("Rules", words=RULES),
    ]
    game = "greedy networks" if plan.greedy else "sampled keys of networks"
    lead = f"A tournament of {spec.name}, first seed {plan.seed}, {game}"
    end = f"Kumite {version('kumite')}, rules {spec.version} of {spec.name}, {when(time.time())}"
    return page(title, title, lead, facts, sections, end)


def _standings(standings: Sequence[Standing]) -> Markup:
    heads = "# entrant kind points# Elo# 95_%# won# drawn# lost# crashes# late# TrueSkill#"
    rows: list[Sequence[Text]] = [
        (
            Markup("<b>{}</b>").format(one.rank) if one.rank <= 3 else str(one.rank),
            one.entrant,
            tag(one.kind, "snapshot" if one.kind == "weights" else one.kind),
            *(f"{one.points:g}", f"{one.elo:.0f}", span(one.elo_low, one.elo_high, 0)),
            *map(str, (one.wins, one.draws, one.losses)),
            *(tag(str(count), "apart") if count else "0" for count in (one.crashes, one.late)),
            f"{one.mu:.1f}",
        )
        for one in standings
    ]
    return table([head.replace("_", " ") for head in heads.split()], rows, "board")


def _bracket(outcome: Outcome) -> Markup:
    """Returns the encounters stage by stage, each encounter with the points of both entrants."""
    played, films = by_encounter(outcome.tournament.matches), _films(outcome)
    lanes: dict[str, list[Markup]] = {}
    for title, stage in groupby(outcome.encounters, key=lambda one: one.title):
        duels = [_duel(outcome, one, played[one.key], films) for one in stage]
        lane = "Losers" if title.startswith("Losers") else "Winners"
        lanes.setdefault(lane, []).append(
            Markup("<div><h3>{}</h3>{}</div>").format(title, joined(duels))
        )
    shown = [
        Markup(
            '<div class="wide bracket" tabindex="0" role="region" aria-label="{}">{}</div>'
        ).format(lane, joined(stages))
        for lane, stages in lanes.items()
    ]
    words = "Points of the matches in each encounter. The entrant that advances is in bold."
    if outcome.tournament.plan.form is Format.SWISS:
        return section("Rounds", *shown, words="Points of the matches in each encounter.")
    return section("Bracket", *shown, words=words)


def _duel(
    outcome: Outcome, one: Encounter, played: Sequence[Played], films: Collection[str]
) -> Markup:
    names, line = outcome.names, Markup('<p class="{}"><span>{}</span> <span>{}</span></p>')
    if one.second is None:
        bye = line.format("won", text(names[one.first]), "bye")
        return Markup('<div class="duel">{}</div>').format(bye)
    shares = [match.outcome for match in played if match.outcome is not None]
    points, result = sum(shares), outcome.tournament.results[one.key]
    is_ahead = result > 0.5 or (
        result == 0.5 and outcome.tournament.plan.form is Format.DOUBLE_ELIMINATION
    )
    sides = (
        (one.first, points, is_ahead),
        (one.second, len(shares) - points, not is_ahead and result != 0.5),
    )
    lines = [
        line.format("won" if is_won else "", text(names[number]), f"{count:g}")
        for number, count, is_won in sides
    ]
    lines += [FILM.format(FILMS, match.match_id) for match in played if match.match_id in films]
    return Markup('<div class="duel">{}</div>').format(joined(lines))


def _cross_table(outcome: Outcome) -> Markup:
    order = [(one.rank, one.entrant) for one in outcome.standings]
    cells = {(cell.row, cell.column): cell for cell in outcome.cells}
    rows = [
        [f"{rank}. {name}", *(_share(cells.get((name, other))) for _, other in order)]
        for rank, name in order
    ]
    words = "Points of the row against the column, in per cent. Hover for the counts."
    heads = ["", *(f"{rank}|" for rank, _ in order)]
    return section("Cross table", table(heads, rows, "heat"), words=words)


def _share(cell: PayoffCell | None) -> Text:
    if cell is None:
        return ""
    points = (cell.wins + cell.draws / 2.0) / cell.games
    counts = f"{cell.wins} won, {cell.draws} drawn, {cell.losses} lost"
    colour, depth = "--win" if points >= 0.5 else "--lose", 0.06 + abs(points - 0.5)
    shown = '<span title="{}" style="background:rgba(var({}),{:.2f})">{:.0f}</span>'
    return Markup(shown).format(counts, colour, depth, 100.0 * points)


def _failures(outcome: Outcome) -> Markup:
    """Returns for each entrant why its matches failed, and how often for each reason."""
    counts: dict[tuple[str, str, str], int] = {}
    for one in outcome.tournament.matches:
        failed = [number for number, is_failed in one.each(one.failed) if is_failed]
        for number in failed:
            key = outcome.names[number], one.failure, "lost" if len(failed) == 1 else "drawn"
            counts[key] = counts.get(key, 0) + 1
        if one.outcome is None:
            key = "the game", one.failure, "not counted"
            counts[key] = counts.get(key, 0) + 1
    if not counts:
        return Markup("")
    rows = [(*key, str(count)) for key, count in sorted(counts.items())]
    return section("Failed matches", table(("who", "reason", "counted as", "matches#"), rows))


def _matches(outcome: Outcome) -> Markup:
    """Returns all matches, in a section that unfolds for each pair of entrants."""
    films, rows_of, names = _films(outcome), _rows(outcome), outcome.names
    titles = {one.key: one.title for one in outcome.encounters}
    pairs: dict[tuple[int, ...], list[Played]] = {}  # by rows of the standings
    for one in outcome.tournament.matches:
        pairs.setdefault(tuple(sorted(rows_of[n] for n in one.key[1:])), []).append(one)
    heads = ("round", "seed#", "in seat 0", "won by", "frames#", "late", "replay")
    parts = []
    for pair, met in sorted(pairs.items()):
        rows = [
            (
                *(titles[one.key], str(one.seed), names[one.key[1 + one.number % 2]]),
                *(_winner(one, names), f"{one.frames:,}" if one.frames else ""),
                ", ".join(f"{names[n]} {late}" for n, late in one.each(one.late) if late),
                joined(_links(one, films), " "),
            )
            for one in met
        ]
        counted = [(one.outcome, one.first) for one in met if one.outcome is not None]
        points = sum(won if rows_of[first] == pair[0] else 1.0 - won for won, first in counted)
        better, other = (text(outcome.standings[row].entrant) for row in pair)
        parts.append(
            Markup("<details><summary>{} {:g} – {:g} {}</summary>{}</details>").format(
                better, points, len(counted) - points, other, table(heads, rows)
            )
        )
    words = (
        "bin/league replay FILE shows a replay in a terminal, and bin/league render FILE --out "
        "film.html makes a film."
    )
    return section("Matches", *parts, words=words)


def _winner(one: Played, names: Sequence[str]) -> Text:
    won = "nobody" if one.outcome in (0.5, None) else names[one.key[1 + (one.outcome == 0.0)]]
    if not one.failure:
        return won
    return joined([won, Markup(' <span title="{}">(failed)</span>').format(text(one.failure))])


def _films(outcome: Outcome) -> Collection[str]:
    """Returns the ids of matches that have films."""
    return {path.stem for path in (outcome.tournament.folder / FILMS).glob("*.html")}


def _links(one: Played, films: Collection[str]) -> list[Markup]:
    links = [FILM.format(FILMS, one.match_id)] if one.match_id in films else []
    if one.match_id:
        links.append(Markup('<a href="{}/{}.replay">file</a>').format(REPLAYS, one.match_id))
    return links

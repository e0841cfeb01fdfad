"""Shows the players' origins: lineages over the learners' steps, and exploiters' certificates."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from league.console.text import when
from league.gates import CandidateGate, GateState, VictimGate
from league.ids import lineage_of
from league.players import Player, PlayerKind, PlayerState
from league.population import Population
from league.views.dashboard.blocks import Block, Chart, ago, player_link
from league.views.dashboard.source import Source
from league.views.html import Text, joined, section, table, tag
from league.views.style import SCREEN_PALETTE

MOST = 400
"""Largest number of snapshots in the picture. Active snapshots take precedence, and an evenly
spaced selection of the others is added.
"""
ROWS = 60
STATES = {
    PlayerState.ACTIVE: SCREEN_PALETTE[0],
    PlayerState.CANDIDATE: SCREEN_PALETTE[4],
    PlayerState.RETIRED: SCREEN_PALETTE[8],
    PlayerState.QUARANTINED: "#c43131",
}


def show(source: Source, parameters: Mapping[str, str]) -> list[Block]:
    players, gates = source.players(), source.gates()
    lanes: dict[str, list[Player]] = {}
    for player in players.values():
        if player.kind is not PlayerKind.BOT:
            lanes.setdefault(_lane(player.name), []).append(player)
    blocks: list[Block] = []
    if lanes:
        blocks.append(_picture(lanes))
    rows = map(_lane_row, lanes, lanes.values())
    blocks.append(section("Lineages", table(HEADINGS, rows)))
    population = source.population()
    if population.members:
        blocks.append(population_section(population))
    if gates:
        tests = [row for gate in gates[::-1][:ROWS] for row in _gate_rows(gate)]
        words = "A candidate enters the league when it beats every victim of its generation. The "
        words += "score and its 95 % interval are corrected for a test that stops when it is sure."
        blocks.append(section("Gates and certificates", table(GATE_HEADINGS, tests), words=words))
    return blocks


GATE_HEADINGS = (
    *("candidate", "opened", "result", "victim", "won–drawn–lost", "score", "evidence (LLR)#"),
    "patched by",
)
HEADINGS = ("lineage", "role", "snapshots#", "active#", "newest", "steps#", "from")


MEMBER_HEADINGS = ("member", "steps#", "settings")
COPY_HEADINGS = ("copied", "member", "steps#", "from", "value a match", "matches#", "settings")


def population_section(population: Population) -> Markup:
    """Returns the present settings of each member of a population, and its copies, newest first."""
    members = [
        (player_link(member.player), f"{member.step:,}", _settings(member.values))
        for member in population.members
    ]
    copies = [
        (
            ago(copy.at),
            player_link(copy.player),
            f"{copy.step:,}",
            player_link(copy.source),
            f"{copy.score:+.3f} ({copy.low:+.3f} to {copy.high:+.3f})",
            f"{copy.matches:,}",
            _settings(copy.values),
        )
        for copy in population.copies[::-1][:ROWS]
    ]
    words = (
        "A member copies another member's weights and settings when clean matches show that the "
    )
    words += "other is better. All comparisons of a run share one confidence."
    tables = table(MEMBER_HEADINGS, members), table(COPY_HEADINGS, copies)
    return section("Population", *tables, words=words)


def _settings(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} = {value:g}" for name, value in sorted(values.items()))


def _lane(name: str) -> str:
    """Returns the learner of a snapshot, which is the part of the snapshot's name before the @."""
    return lineage_of(name) or name


def _lane_row(lane: str, players: Sequence[Player]) -> Sequence[Text]:
    snapshots = [player for player in players if player.kind is PlayerKind.SNAPSHOT]
    newest = max(players, key=lambda player: player.step)
    parents = {parent for player in players if (parent := player.parent) and _lane(parent) != lane}
    return (
        player_link(lane) if any(player.name == lane for player in players) else lane,
        tag(newest.role.value.replace("_", " ")),
        f"{len(snapshots):,}",
        f"{sum(player.state is PlayerState.ACTIVE for player in snapshots):,}",
        player_link(newest.name),
        f"{newest.step:,}",
        joined((player_link(parent) for parent in sorted(parents)[:5]), ", "),
    )


def _picture(lanes: Mapping[str, Sequence[Player]]) -> Chart:
    names = list(lanes)[::-1]
    everybody = [player for players in lanes.values() for player in players]
    if len(everybody) > MOST:
        active = [player for player in everybody if player.state is PlayerState.ACTIVE]
        others = [player for player in everybody if player.state is not PlayerState.ACTIVE]
        stride = max(1, len(others) // max(1, MOST - len(active)))
        everybody = [*active[-MOST:], *others[::stride]]
    places = {player.name: [player.step, names.index(_lane(player.name))] for player in everybody}
    series: list[dict[str, Any]] = []
    for state, colour in STATES.items():
        points = [
            {
                "name": f"{player.name}: {player.state.value}, {when(player.created_at)}",
                "value": places[player.name],
            }
            for player in everybody
            if player.state is state
        ]
        series.append(
            {
                "type": "scatter",
                "name": state.value,
                "data": points,
                "symbolSize": 9,
                "itemStyle": {"color": colour},
            }
        )
    branches = [
        [{"coord": places[player.parent]}, {"coord": places[player.name]}]
        for player in everybody
        if player.parent in places and places[player.parent][1] != places[player.name][1]
    ]
    series[0]["markLine"] = {
        "data": branches,
        "silent": True,
        "symbol": ["none", "arrow"],
        "lineStyle": {"color": SCREEN_PALETTE[8], "type": "solid", "width": 1},
    }
    used = [entry for entry in series if entry["data"] or entry is series[0]]
    options = {
        "grid": {"left": 130, "right": 20, "top": 36, "bottom": 30},
        "legend": {
            "top": 0,
            "left": 0,
            "type": "scroll",
            "data": [entry["name"] for entry in used],
        },
        "xAxis": {"type": "value", "splitLine": {"show": False}},
        "yAxis": {
            "type": "category",
            "data": names,
            "axisLabel": {"width": 115, "overflow": "truncate"},
        },
        "tooltip": {"trigger": "item", "renderMode": "richText", "formatter": "{b}"},
        "series": used,
    }
    words = "Every snapshot by the steps of its learner; arrows lead to who began with its weights."
    height = 90 + 34 * len(names)
    return Chart(
        title="Lineages over steps", words=words, options=options, height=height, wide=True
    )


def _gate_rows(gate: CandidateGate) -> Iterator[tuple[Text, ...]]:
    """Yields a row for each victim that the candidate has met. The first row also describes the
    gate.
    """
    undecided = gate.state is GateState.UNDECIDED
    patched = joined((player_link(patch.snapshot) for patch in gate.patches), ", ")
    cells: tuple[Text, ...] = (
        player_link(gate.candidate),
        ago(gate.opened_at),
        joined([tag(gate.state.value), gate.reason if undecided else ""], " "),
    )
    for test in [test for test in gate.victims if test.matches] or gate.victims[:1]:
        counts = f"{test.wins}–{test.draws}–{test.losses}"
        yield (*cells, player_link(test.victim), counts, *_scores(test), patched)
        cells, patched = ("", "", ""), Markup("")


def _scores(test: VictimGate) -> tuple[Text, Text]:
    """Returns the certificate's score with its interval, and its log-likelihood ratio."""
    if not test.certificate_json:
        return "", ""
    certificate = json.loads(test.certificate_json)
    score = "{score:.1%} [{low:.1%} to {high:.1%}]".format(**certificate["estimate"])
    return score, f"{certificate['llr']:.2f}"

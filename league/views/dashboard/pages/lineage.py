"""Where players come from: lineages over the learners' steps, and exploiters' certificates."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from league.gates import CandidateGate, GateState, VictimGate
from league.ids import lineage_of
from league.players import Player, PlayerKind, PlayerState
from league.views.dashboard.blocks import (
    PALETTE,
    Block,
    Chart,
    Text,
    joined,
    player_link,
    section,
    table,
    tag,
)
from league.views.dashboard.source import Source
from league.views.text import when

MOST = 400
"""Snapshots that the picture shows; of more, the active ones and an even choice of the others."""
ROWS = 60
STATES = {
    PlayerState.ACTIVE: PALETTE[0],
    PlayerState.CANDIDATE: PALETTE[4],
    PlayerState.RETIRED: PALETTE[8],
    PlayerState.QUARANTINED: "#c43131",
}


def show(source: Source, parameters: Mapping[str, str]) -> list[Block]:
    players, gates = source.players(), source.gates()
    lanes: dict[str, list[Player]] = {}
    for player in players.values():
        if player.kind is not PlayerKind.BOT:
            lanes.setdefault(_lane(player), []).append(player)
    blocks: list[Block] = []
    if lanes:
        blocks.append(_picture(lanes))
    blocks.append(section("Lineages", table(HEADINGS, [_lane_row(*one) for one in lanes.items()])))
    if gates:
        rows = [row for gate in gates[::-1][:ROWS] for row in _gate_rows(gate)]
        words = "A candidate enters the league when it beats every victim of its generation. The "
        words += "score and its 95 % interval are corrected for a test that stops when it is sure."
        blocks.append(section("Gates and certificates", table(GATE_HEADINGS, rows), words=words))
    return blocks


GATE_HEADINGS = (
    *("candidate", "opened", "result", "victim", "won–drawn–lost", "score", "evidence (LLR)#"),
    "patched by",
)
HEADINGS = ("lineage", "role", "snapshots#", "active#", "newest", "steps#", "from")


def _lane(player: Player) -> str:
    """A snapshot's learner: what is before its @."""
    return lineage_of(player.name) or player.name


def _lane_row(lane: str, players: Sequence[Player]) -> Sequence[Text]:
    own = [one for one in players if one.kind is PlayerKind.SNAPSHOT]
    newest = max(players, key=lambda one: one.step)
    parents = {one.parent for one in players if one.parent and _lane_name(one.parent) != lane}
    return (
        player_link(lane) if any(one.name == lane for one in players) else lane,
        tag(newest.role.value.replace("_", " ")),
        f"{len(own):,}",
        f"{sum(one.state is PlayerState.ACTIVE for one in own):,}",
        player_link(newest.name),
        f"{newest.step:,}",
        joined((player_link(one) for one in sorted(parents)[:5]), ", "),
    )


def _lane_name(name: str) -> str:
    return lineage_of(name) or name


def _picture(lanes: Mapping[str, Sequence[Player]]) -> Chart:
    names = list(lanes)[::-1]
    everybody = [one for players in lanes.values() for one in players]
    if len(everybody) > MOST:
        active = [one for one in everybody if one.state is PlayerState.ACTIVE]
        others = [one for one in everybody if one.state is not PlayerState.ACTIVE]
        stride = max(1, len(others) // max(1, MOST - len(active)))
        everybody = [*active[-MOST:], *others[::stride]]
    places = {one.name: [one.step, names.index(_lane(one))] for one in everybody}
    series: list[dict[str, Any]] = []
    for state, colour in STATES.items():
        points = [
            {
                "name": f"{one.name}: {one.state.value}, {when(one.created_at)}",
                "value": places[one.name],
            }
            for one in everybody
            if one.state is state
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
        [{"coord": places[one.parent]}, {"coord": places[one.name]}]
        for one in everybody
        if one.parent in places and places[one.parent][1] != places[one.name][1]
    ]
    series[0]["markLine"] = {
        "data": branches,
        "silent": True,
        "symbol": ["none", "arrow"],
        "lineStyle": {"color": "#7d8590", "type": "solid", "width": 1},
    }
    used = [one for one in series if one["data"] or one is series[0]]
    options = {
        "grid": {"left": 130, "right": 20, "top": 36, "bottom": 30},
        "legend": {"top": 0, "data": [one["name"] for one in used]},
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
    """A row for each victim that it has fought; the first also has what holds of the gate."""
    undecided = gate.state is GateState.UNDECIDED
    patched = joined((player_link(patch.snapshot) for patch in gate.patches), ", ")
    own: tuple[Text, ...] = (
        player_link(gate.candidate),
        when(gate.opened_at),
        joined([tag(gate.state.value), gate.reason if undecided else ""], " "),
    )
    for test in [test for test in gate.victims if test.matches] or gate.victims[:1]:
        counts = f"{test.wins}–{test.draws}–{test.losses}"
        yield (*own, player_link(test.victim), counts, *_scores(test), patched)
        own, patched = ("", "", ""), Markup("")


def _scores(test: VictimGate) -> tuple[Text, Text]:
    """The score with its interval, and the log-likelihood ratio, as the certificate has them."""
    if not test.certificate_json:
        return "", ""
    found = json.loads(test.certificate_json)
    score = "{score:.1%} [{low:.1%} to {high:.1%}]".format(**found["estimate"])
    return score, f"{found['llr']:.2f}"

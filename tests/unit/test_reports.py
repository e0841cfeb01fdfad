"""Reports: gaps, drops and bounds are those of the matches; pages are safe and whole."""

from __future__ import annotations

import io
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from PIL import Image

from evaluator.reports.players import (
    HELD_OUT,
    LEAGUE,
    TRAINING,
    Bound,
    Met,
    ancestors,
    drops,
    gap,
    group_scores,
    headline,
    measured,
    player_sections,
)
from league.metrics import Measured
from league.views.report import Forest, Panel, Report, Section, Trend, render_html, write


def met(wins: int, losses: int, *, group: str = LEAGUE, step: int | None = None) -> Met:
    return Met(
        opponent=f"main@{step}" if step is not None else f"{group} {wins}",
        group=group,
        wins=wins,
        draws=0,
        losses=losses,
        win_rate=measured(wins, wins + losses),
        means={},
        ancestor_step=step,
    )


def test_the_gap_of_two_shares_has_newcombe_s_interval() -> None:
    found = gap(measured(56, 70), measured(48, 80))
    assert (found.value, found.low, found.high) == pytest.approx((0.2, 0.0524, 0.3339), abs=1e-4)


def test_every_opponent_of_a_group_counts_alike() -> None:
    scores = group_scores(
        [met(400, 0, group=TRAINING), met(0, 10, group=TRAINING), met(5, 5, group=HELD_OUT)]
    )
    assert list(scores) == [TRAINING, HELD_OUT]
    assert scores[TRAINING].value == pytest.approx(0.5)
    assert scores[TRAINING].high - scores[TRAINING].low > 0.25  # as of 39 matches, not of 410


@pytest.mark.parametrize("exact", [True, False])
def test_a_value_that_can_be_computed_is_not_given_by_a_bound(exact: bool) -> None:
    paid = Measured(0.3, 0.2, 0.4)
    bound = Bound(exploiter="a", score=paid, matches=9, source="tries", steps=5, paid=paid)
    line = headline("main@1", [], [bound], exact=exact)["exploitability"]
    assert ("bin/league exploitability main@1" in line, "+0.20" in line) == (exact, not exact)


def test_ancestors_that_were_met_too_rarely_count_with_their_neighbours() -> None:
    steps = {900: (8, 2), 850: (1, 1), 800: (6, 3), 400: (20, 0), 350: (0, 2), 100: (12, 12)}
    own = [met(*counts, step=step) for step, counts in steps.items()]
    pooled = ancestors(own)
    assert [one.opponent for one in pooled] == [
        "main@800 to 900 (3 together)",
        "main@350 to 400 (2 together)",
        "main@100",
    ]
    assert [(one.wins, one.losses) for one in pooled] == [(15, 6), (20, 2), (12, 12)]
    assert pooled[0].score == measured(15, 21)
    assert [one.matches for one in ancestors(own[1:3])] == [11], "all there are"
    assert [one.opponent for one in ancestors(own[1:4])] == ["main@400 to 850 (3 together)"]


def test_a_drop_is_marked_where_intervals_are_apart() -> None:
    steps = {900: (55, 45), 700: (80, 20), 500: (60, 40), 300: (70, 30), 100: (20, 80)}
    own = [met(*counts, step=step) for step, counts in steps.items()]
    assert [one.ancestor_step for one in drops(own)] == [500, 100]
    assert drops([met(46, 54, step=1)]) == []
    section = next(one for one in player_sections("main@999", own) if one.title[:4] == "Forg")
    assert [row[-1] == "drop" for row in section.rows] == [False, False, True, False, True]


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    name = "<script>alert(1)</script> & $\\frac$"
    values = [Measured(0.5, 0.4, 0.6), None]
    forest = Forest(rows=[name, "b"], groups=["", name], panels=[Panel(title="x", values=values)])
    line = [(0.0, values[0]), (1e6, Measured(0.7))]
    trend = Trend(x_label="steps", lines={name: line, "b": line})
    report = Report(
        title=name,
        lead=name,
        facts={name: name},
        sections=[
            Section(title=name, words=name, chart=chart, headings=(name, "x#"), rows=[(name, name)],
                    is_main=True)
            for chart in (forest, trend)
        ],
        numbers={"infinite": float("inf")},
    )  # fmt: skip
    page = render_html(report)
    assert "<script" not in page
    assert "http" not in page.replace("http://www.w3.org", "")
    svgs = page.split("<svg")[1:]
    assert len(svgs) == 2
    for svg in svgs:
        text = "<svg" + svg.partition("</svg>")[0] + "</svg>"
        assert name in "".join(ElementTree.fromstring(text).itertext())
    for path in write(report, tmp_path / "new" / "folder"):
        assert path.stat().st_size
    assert json.loads((tmp_path / "new/folder/report.json").read_text()) == {"infinite": None}
    with Image.open(io.BytesIO((tmp_path / "new/folder/report.png").read_bytes())) as image:
        assert image.size[0] == 1500

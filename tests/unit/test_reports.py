"""Reports: gaps, drops and bounds are those of the matches; pages are safe and whole."""

from __future__ import annotations

import io
import json
import math
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from evaluator.reports.players import (
    HELD_OUT,
    LEAGUE,
    TRAINING,
    Bound,
    Met,
    ancestors,
    beaten,
    bounds_of,
    drops,
    gap,
    group_scores,
    headline,
    measured,
    player_sections,
)
from league.metrics import Measured
from league.runs.exploits import PAYOFFS, POINTS, Attempt, Exploit
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


@pytest.mark.parametrize("matches", [4, 20, 24, 100])
@pytest.mark.parametrize("draws", [0.0, 0.3])
def test_all_claims_of_a_headline_together_hold_as_often_as_they_say(
    matches: int, draws: float
) -> None:
    """Thirteen bots and four earlier selves of the same strength, and five exploiters that win
    nothing on average: any claim is wrong.
    """
    rng, leagues, wrong = np.random.default_rng(matches), 600, 0
    even = [(1 - draws) / 2, draws, (1 - draws) / 2]
    groups = [TRAINING] * 10 + [HELD_OUT] * 3 + [LEAGUE] * 4
    for _ in range(leagues):
        own = [
            replace(
                met(wins, losses, group=group, step=None if group != LEAGUE else 100 * number),
                opponent=f"{group} {number}",
                draws=drawn,
            )
            for number, (group, (wins, drawn, losses)) in enumerate(
                zip(groups, rng.multinomial(matches, even, len(groups)).tolist(), strict=True)
            )
        ]
        exploits = [certificate(*rng.multinomial(400, even).tolist()) for _ in range(5)]
        bounds = bounds_of("main@9999", [], own, {}, exploits)
        wrong += bool(beaten(own) or drops(ancestors(own)) or bounds[0].exploitability > 0.0)
    assert wrong <= 0.05 * leagues


@pytest.mark.parametrize("loss", [3.0, 13.0, 100.0])
@pytest.mark.parametrize("matches", [20, 100])
def test_all_claims_hold_where_large_losses_are_rare(matches: int, loss: float) -> None:
    """As above in a game in which who wins 1 in most matches loses much in the others."""
    rng, leagues, wrong = np.random.default_rng(matches), 300, 0
    groups = [TRAINING] * 10 + [HELD_OUT] * 3 + [LEAGUE] * 4
    even = 1.0 / (1.0 + loss)
    for _ in range(leagues):
        own = [
            replace(
                met(matches - lost, lost, group=group, step=None if group != LEAGUE else number),
                opponent=f"{group} {number}",
                paid=Measured(((matches - lost) - lost * loss) / matches),
                square=((matches - lost) + lost * loss**2) / matches,
                largest=loss,
            )
            for number, group in enumerate(groups)
            for lost in [int(rng.binomial(matches, even))]
        ]
        lost = rng.binomial(400, even, 5).tolist()
        exploits = [certificate(400 - one, 0, one, (1.0, -loss)) for one in lost]
        bounds = bounds_of("main@9999", [], own, {}, exploits, "chips")
        wrong += bool(beaten(own) or drops(ancestors(own)) or bounds[0].exploitability > 0.0)
    assert wrong <= 0.05 * leagues


def test_a_game_that_does_not_state_its_bound_gets_no_claim() -> None:
    own = [replace(met(100, 0, group=TRAINING), paid=Measured(1.0, 0.9, 1.1), square=1.0)]
    assert not beaten(own)
    assert beaten([replace(own[0], largest=2.0)])


def test_a_certificate_of_points_without_a_mean_square_keeps_its_bound() -> None:
    whole = replace(certificate(300, 0, 100), unit=POINTS)
    (best,) = whole.tries
    old = replace(whole, largest=None, tries=(replace(best, square=math.nan),))
    assert old.bound == whole.bound
    assert whole.bound == pytest.approx(0.41, abs=0.02)


def test_a_claim_that_many_matches_show_is_made() -> None:
    own = [met(18, 2, group=TRAINING), met(200, 100, group=HELD_OUT), met(9, 0, group=HELD_OUT)]
    assert beaten(own) == {own[0].opponent, own[1].opponent}, "nine matches are too few"
    (bound,) = bounds_of("main@1", [], [], {}, [certificate(300, 0, 100)])
    assert bound.exploitability == pytest.approx(0.41, abs=0.02)
    unknown = replace(certificate(300, 0, 100), unit=PAYOFFS, largest=None)
    (none,) = bounds_of("main@1", [], [], {}, [unknown])
    assert none.exploitability == -math.inf
    assert "0.5" not in headline("main@1", [], [none], exact=False)["exploitability"].split("(")[0]


def certificate(
    wins: int, draws: int, losses: int, payoffs: tuple[float, float] = (1.0, -1.0)
) -> Exploit:
    """What `bin/league exploit` writes down of an exploiter's clean matches."""
    count = wins + draws + losses
    mean = (wins * payoffs[0] + losses * payoffs[1]) / count
    square = (wins * payoffs[0] ** 2 + losses * payoffs[1] ** 2) / count
    attempt = Attempt(
        start="victim",
        seed=0,
        clean_seed=0,
        digest="0" * 64,
        steps=1,
        reached={},
        trained=0.0,
        wins=wins,
        draws=draws,
        losses=losses,
        failed=0,
        value=Measured(mean),
        square=square,
        seconds=1.0,
    )
    return Exploit(
        victim="main@1",
        victim_digest="",
        game="brawl",
        game_version="1",
        reward="dense",
        unit=POINTS if payoffs == (1.0, -1.0) else PAYOFFS,
        largest=max(map(abs, payoffs)),
        tries=(attempt,),
    )


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
    steps = {900: (55, 45), 700: (80, 20), 500: (50, 50), 300: (70, 30), 100: (20, 80)}
    own = [met(*counts, step=step) for step, counts in steps.items()]
    assert [one.ancestor_step for one in drops(own)] == [500, 100]
    assert drops([met(42, 58, step=1)]) == []
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

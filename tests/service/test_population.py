"""Mains that copy each other: comparisons in the matchmaker's log, over gRPC and over restarts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from small_league import SmallLeague, bot, live, played, small_league, snapshot
from staged import events

from league.errors import InvalidInput
from league.evaluations import targets
from league.players import Assignment, Pairing
from league.population import MemberCopy
from league.views.dashboard.pages import lineage
from matchmaker.acts import evaluate

VALUES = {"learning_rate": 1e-3, "ent_coef": 0.1}
OTHERS = {"learning_rate": 4e-3, "ent_coef": 0.2}
INTERVAL = 100


@pytest.fixture
def league(tmp_path: Path) -> Iterator[SmallLeague]:
    with small_league(tmp_path, (), population_interval=INTERVAL) as league:
        yield league


def begin(league: SmallLeague, name: str) -> int:
    """Starts the learner of a main."""
    player = replace(live(name), creator=f"learner-{name}")
    league.client.register_players([player])
    return league.client.open_incarnation(f"learner-{name}", name).number


def publish(league: SmallLeague, name: str, number: int, step: int) -> None:
    player = snapshot(step, name, creator=f"learner-{name}")
    league.client.register_players([player], number)


def ask(
    league: SmallLeague, number: int, step: int, values: dict[str, float], applied: int = 0
) -> MemberCopy | None:
    return league.client.compare_member(number, step, 1_000, values, applied)


def play(league: SmallLeague, share: Callable[[int], bool]) -> None:
    """Plays all requested matches. `share` says by a pair's number whether "strong" wins it."""
    number = league.client.open_incarnation("evaluator-0").number
    for asked in league.client.evaluations(open_only=True):
        wanted = [
            Pairing(player=one.player, opponent=one.opponent, pairs=one.until // 2, book=one.book,
                    seed=0, until=one.until)
            for one in targets(asked)
        ]  # fmt: skip
        found = league.client.acquire_pairings(number, wanted)

        def outcome(at: int, match: Assignment) -> float:
            is_strong = match.seats[0].name.startswith("strong")
            return float(is_strong == share(at // 2))

        results = [played(match, outcome(at, match)) for at, match in enumerate(found)]
        league.client.report_results(number, results)


@pytest.fixture
def two(league: SmallLeague) -> tuple[int, int]:
    """Two mains with a snapshot each; each has begun its first comparison."""
    weak, strong = begin(league, "weak"), begin(league, "strong")
    for name, number in (("weak", weak), ("strong", strong)):
        publish(league, name, number, 100)
    assert ask(league, weak, 100, VALUES) is None
    assert ask(league, strong, 100, OTHERS) is None
    return weak, strong


def test_a_member_copies_a_better_member_and_perturbs_its_settings(
    league: SmallLeague, two: tuple[int, int]
) -> None:
    weak, strong = two
    play(league, lambda pair: pair % 10 < 9)
    assert ask(league, weak, 150, VALUES) is None  # too soon
    copy = ask(league, weak, 200, VALUES)
    assert copy is not None
    assert (copy.player, copy.source, copy.step) == ("weak", "strong@100", 200)
    assert copy.digest == snapshot(100, "strong").digest
    assert copy.values["learning_rate"] in (5e-3, 3.2e-3)
    assert copy.values["ent_coef"] in (0.25, 0.16)
    assert copy.score == pytest.approx(0.8)
    assert 0.0 < copy.low < copy.score < copy.high
    # the small league has a third main, which has no snapshot yet
    assert copy.confidence == pytest.approx(1 - 0.05 / (3 * 2 * 10))
    assert ask(league, strong, 200, OTHERS) is None  # nobody is better
    assert league.client.population().copies == (copy,)


def test_equal_members_go_on_with_their_own_settings(
    league: SmallLeague, two: tuple[int, int]
) -> None:
    play(league, lambda pair: pair % 2 == 0)
    for step in (200, 300):
        for number, values in zip(two, (VALUES, OTHERS), strict=True):
            assert ask(league, number, step, values) is None
        play(league, lambda pair: pair % 2 == 0)
    assert league.client.population().copies == ()


def test_a_copy_is_repeated_until_it_is_applied_over_a_restart(tmp_path: Path) -> None:
    with small_league(tmp_path, (), population_interval=INTERVAL) as league:
        weak, strong = begin(league, "weak"), begin(league, "strong")
        for name, number in (("weak", weak), ("strong", strong)):
            publish(league, name, number, 100)
        ask(league, weak, 100, VALUES)
        play(league, lambda _: True)
        copy = ask(league, weak, 200, VALUES)
        assert copy is not None
        assert ask(league, weak, 200, VALUES) == copy
    with small_league(tmp_path, (), population_interval=INTERVAL) as league:
        weak = begin(league, "weak")
        assert league.client.population().copies == (copy,)
        assert ask(league, weak, 200, VALUES) == copy
        assert ask(league, weak, 200, dict(copy.values), copy.number) is None
        assert len(events(league, "member_copied")) == 1


def test_matches_of_a_comparison_that_are_not_played_decide_nothing(
    league: SmallLeague, two: tuple[int, int]
) -> None:
    assert ask(league, two[0], 200, VALUES) is None
    asked = len(league.client.evaluations())
    assert ask(league, two[0], 300, VALUES) is None
    assert len(league.client.evaluations()) == asked  # the first is still open
    play(league, lambda _: True)
    assert ask(league, two[0], 400, VALUES) is not None


def test_a_better_snapshot_in_quarantine_is_not_copied(
    league: SmallLeague, two: tuple[int, int]
) -> None:
    play(league, lambda _: True)
    league.client.quarantine("strong@100", reason="it plays oddly", by="bob")
    assert ask(league, two[0], 200, VALUES) is None


def test_the_newest_snapshots_out_of_quarantine_are_compared(
    league: SmallLeague, two: tuple[int, int]
) -> None:
    weak, strong = two
    play(league, lambda pair: pair % 2 == 0)
    publish(league, "weak", weak, 150)
    publish(league, "strong", strong, 150)
    league.client.quarantine("strong@150", reason="it plays oddly", by="bob")
    assert ask(league, weak, 200, VALUES) is None
    play(league, lambda _: True)
    copy = ask(league, weak, 300, VALUES)
    assert copy is not None
    assert copy.source == "strong@100"


def test_a_comparison_is_left_out_while_too_many_evaluations_are_open(
    league: SmallLeague, two: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    play(league, lambda pair: pair % 2 == 0)
    with monkeypatch.context() as full:
        full.setattr(evaluate, "MAX_OPEN", 0)
        assert ask(league, two[0], 200, VALUES) is None
    assert ask(league, two[0], 300, VALUES) is None
    publish(league, "strong", two[1], 350)
    assert ask(league, two[0], 400, VALUES) is None
    play(league, lambda _: True)
    assert ask(league, two[0], 500, VALUES) is not None


def test_the_log_has_each_members_settings(league: SmallLeague, two: tuple[int, int]) -> None:
    data = [json.loads(event.data_json)["member"] for event in events(league, "member_compared")]
    assert [(one["player"], one["values"]) for one in data] == [
        ("weak", VALUES),
        ("strong", OTHERS),
    ]
    members = {member.player: member for member in league.client.population().members}
    assert members["strong"].values == OTHERS
    assert members["strong"].step == 100


def test_only_mains_are_compared(league: SmallLeague, two: tuple[int, int]) -> None:
    league.client.register_players([bot("based")])
    number = league.client.open_incarnation("evaluator-1").number
    with pytest.raises(InvalidInput, match="evaluator-1"):
        ask(league, number, 100, VALUES)


def test_a_league_without_a_population_compares_nobody(tmp_path: Path) -> None:
    with small_league(tmp_path, ()) as league:
        number = begin(league, "weak")
        publish(league, "weak", number, 100)
        assert ask(league, number, 100, VALUES) is None
        assert not league.client.standing("weak", 1_000, 100).compare
        assert league.client.population().members == ()


def test_the_lineage_page_shows_members_and_copies(
    league: SmallLeague, two: tuple[int, int]
) -> None:
    assert league.client.standing("weak", 1_000, 100).compare
    play(league, lambda _: True)
    ask(league, two[0], 200, VALUES)
    shown = str(lineage.population_section(league.client.population()))
    assert "strong@100" in shown
    assert "learning_rate = 0.004" in shown  # the strong member's own

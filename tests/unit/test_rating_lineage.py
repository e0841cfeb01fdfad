"""The fit of a league that learns: who is in it, what neighbours and training matches add, and what
they must not.
"""

from dataclasses import replace

import numpy as np
import pytest

from league.errors import InvalidInput
from league.ids import SnapshotName
from league.players import PayoffCell, Player, PlayerKind
from league.stats.ratings.fit import fit_cells
from league.stats.ratings.lineage import fit_league

BOTS = ("aerial", "based", "constant")


def cell(row, column, wins, losses, draws=0):
    return PayoffCell(row=row, column=column, wins=wins, draws=draws, losses=losses)


def book(*cells):
    """Each pair from both sides, as a payoff table has it."""
    return [
        *cells,
        *(cell(one.column, one.row, one.losses, one.wins, one.draws) for one in cells),
    ]


def player(name, kind=PlayerKind.SNAPSHOT):
    return Player(name=name, game="brawl", kind=kind)


BOT_PLAYERS = [player(name, PlayerKind.BOT) for name in BOTS]
BOTS_MET = [
    cell("aerial", "based", 60, 40),
    cell("based", "constant", 70, 30),
    cell("aerial", "constant", 80, 20),
]


def lineage(*steps, name="main"):
    return [player(str(SnapshotName(name, step))) for step in steps]


def snapshots_met(*snapshots, games=20):
    """Each wins a little more than the one before against every bot."""
    found = []
    for place, one in enumerate(snapshots):
        wins = games * (5 + place) // 12
        found += [cell(bot, one.name, games - wins, wins) for bot in BOTS]
    return found


def half_width(fit, name):
    interval = fit.interval(fit.number(name))
    return interval.high - interval.value


def rating(fit, name):
    return fit.interval(fit.number(name)).value


@pytest.mark.parametrize("steps", [(), (50_000,)])
def test_a_league_without_lineages_has_the_fit_of_its_games(steps):
    """To the last bit; a single snapshot has no neighbour, and a learner without one no place."""
    snapshots = lineage(*steps)
    cells = book(*BOTS_MET, *snapshots_met(*snapshots))
    climb = [] if steps else [cell("main@0", "based", 3, 400)]
    found = fit_league(cells, [*BOT_PLAYERS, *snapshots], climb, {"based": 27.0})
    plain = fit_cells(cells, {"based": 27.0})
    assert found.names == plain.names
    assert found.rating_N.tobytes() == plain.rating_N.tobytes()
    assert found.covariance_NN.tobytes() == plain.covariance_NN.tobytes()
    assert (found.misfit, found.spread, found.nu) == (plain.misfit, plain.spread, plain.nu)


def test_neighbours_lend_a_snapshot_of_few_games_theirs():
    before, between, after = snapshots = lineage(1_000_000, 1_050_000, 1_100_000)
    cells = book(*BOTS_MET, *snapshots_met(before, after, games=240))
    cells += book(cell("based", between.name, 1, 1))
    plain, found = fit_cells(cells), fit_league(cells, [*BOT_PLAYERS, *snapshots])
    assert half_width(found, between.name) < half_width(plain, between.name) / 3
    ends = rating(found, before.name), rating(found, after.name)
    assert rating(found, between.name) == pytest.approx(np.mean(ends), abs=0.5)


def test_the_fit_has_the_players_with_a_clean_game_and_no_live_learner():
    """Their mean is 25, and the intervals are of differences to it."""
    snapshots = lineage(50_000, 100_000, 150_000)
    cells = book(*BOTS_MET, *snapshots_met(*snapshots[:2]))
    climb = [
        cell("main@0", "constant", 5, 95),
        cell("main@100000", "main@150000", 4, 6),  # without a clean game
        cell("main@100000", "kiter", 4, 6),
        cell("main@150000", "main@50000", 40, 10),
    ]
    players = [*BOT_PLAYERS, player("kiter", PlayerKind.BOT), *snapshots]
    found = fit_league(cells, players, climb)
    assert found.names == (*BOTS, "main@100000", "main@50000")
    assert found.rating_N.mean() == pytest.approx(25.0, abs=1e-9)
    assert found.covariance_NN.shape == (5, 5)
    assert found.covariance_NN.sum(axis=0) == pytest.approx(np.zeros(5), abs=1e-9)
    with pytest.raises(InvalidInput, match="main@150000"):
        found.number("main@150000")
    anchored = fit_league(cells, players, climb, {"main@50000": 30.0, "main@150000": 34.0})
    assert rating(anchored, "main@50000") == 30.0
    assert half_width(anchored, "main@50000") == 0.0


def test_training_matches_are_of_the_learner_after_a_snapshot():
    """Those between two snapshots move both alike, those after the newest the older one less. The
    opponents are people, as what a bot is to a learner changes.
    """
    snapshots = lineage(500_000, 550_000)
    cells = book(*BOTS_MET, *snapshots_met(*snapshots))
    players = [*(player(name, PlayerKind.HUMAN) for name in BOTS), *snapshots]
    silent = fit_league(cells, players)
    gains = {}
    for step in (500_000, 550_000):
        alike = fit_league(cells, players, [cell(f"main@{step}", bot, 42, 58) for bot in BOTS])
        assert half_width(alike, f"main@{step}") < half_width(silent, f"main@{step}")
        won = fit_league(cells, players, [cell(f"main@{step}", bot, 60, 40) for bot in BOTS])
        gains[step] = [rating(won, one.name) - rating(silent, one.name) for one in snapshots]
    older, newer = gains[500_000]
    assert older > 0.2
    assert newer == pytest.approx(older, abs=0.1)
    older, newer = gains[550_000]
    assert 0.05 < older < 0.4 * newer


def test_training_matches_that_were_read_after_the_players_do_not_overlap():
    """A caller reads them one after the other, and copies may be frozen between the two."""
    steps = (12_000, 20_000, 33_000, 41_000, 53_000, 61_000, 74_000, 82_000, 90_000)
    known = lineage(*steps[:1])
    cells = book(*BOTS_MET, *snapshots_met(*known))
    climb = [cell(f"main@{step}", "based", 30, 30) for step in (0, *steps)]
    found = fit_league(cells, [*BOT_PLAYERS, *known], climb)
    assert set(found.names) == {*BOTS, "main@12000"}
    assert np.isfinite(found.covariance_NN).all()


def test_a_learner_that_is_better_in_training_has_not_climbed():
    """It beats every snapshot, old or new, in the same way: so the snapshots are equals."""
    snapshots = lineage(*range(1_000_000, 1_500_000, 100_000))
    equal = [cell(bot, one.name, 50, 50) for bot in BOTS for one in snapshots]
    cells = book(*BOTS_MET, *equal)
    climb = [
        cell(later.name, earlier.name, 130, 70)
        for place, later in enumerate(snapshots)
        for earlier in snapshots[: place + 1]
    ]
    found = fit_league(cells, [*BOT_PLAYERS, *snapshots], climb)
    oldest, newest = (rating(found, one.name) for one in (snapshots[0], snapshots[-1]))
    assert newest - oldest < 0.5


def test_one_pair_says_only_so_much():
    """Ten thousand matches against the bot that it happens to beat leave the others' word."""
    snapshots = lineage(1_000_000, 1_050_000, 1_100_000, 1_150_000)
    cells = book(*BOTS_MET, *snapshots_met(*snapshots, games=120))
    climb = [cell(f"main@{step}", "based", 9_000, 1_000) for step in (1_000_000, 1_050_000)]
    players = [*BOT_PLAYERS, *snapshots]
    silent, found = fit_league(cells, players), fit_league(cells, players, climb)
    assert found.tau > 2 * silent.tau
    for one in snapshots:
        assert half_width(found, one.name) > half_width(silent, one.name)
        assert rating(found, one.name) - rating(silent, one.name) < 1.5


def test_each_generation_of_an_exploiter_begins_with_new_weights():
    """Its steps count from where the one before ended, though the learner's continue."""
    first = lineage(50_000, 100_000, 150_000, name="rival.g1")
    later = lineage(550_000, 600_000, 650_000, name="rival.g3")
    ended = lineage(200_000, 500_000, name="rival.g2")
    climb = "rival.g1@100000", "rival.g3@600000"
    fits = []
    for generation, stretch, others in (first, climb[0], []), (later, climb[1], ended):
        cells = book(*BOTS_MET, *snapshots_met(*generation))
        trained = [cell(stretch, "based", 12, 8)]
        fits.append(fit_league(cells, [*BOT_PLAYERS, *others, *generation], trained))
    pairs = zip(first, later, strict=True)
    for one, other in pairs:
        assert rating(fits[1], other.name) == pytest.approx(rating(fits[0], one.name), abs=1e-9)
        assert half_width(fits[1], other.name) == pytest.approx(
            half_width(fits[0], one.name), abs=1e-9
        )


def test_another_run_s_snapshots_are_a_lineage_of_their_own():
    """As sure as in their own league, and no neighbours of this league's snapshot."""
    imported = lineage(50_000, 100_000, 150_000, name="first:main")
    (single,) = lineage(150_000)
    renamed = [replace(one, name=one.name.removeprefix("first:")) for one in imported]
    here = fit_league(
        book(*BOTS_MET, *snapshots_met(*imported), *snapshots_met(single, games=200)),
        [*BOT_PLAYERS, *imported, single],
    )
    other = player("someone", PlayerKind.HUMAN)
    there = fit_league(
        book(*BOTS_MET, *snapshots_met(*renamed), *snapshots_met(other, games=200)),
        [*BOT_PLAYERS, *renamed, other],
    )
    for one, same in zip([*imported, single], [*renamed, other], strict=True):
        assert rating(here, one.name) == pytest.approx(rating(there, same.name), abs=1e-6)
        assert half_width(here, one.name) == pytest.approx(half_width(there, same.name), abs=1e-6)


def test_a_reference_is_its_learner_at_that_step():
    """A copy of the same weights; both being of one strength, their games count for both."""
    (snapshot,) = lineage(50_000)
    reference = player("main.reference-50000", PlayerKind.REFERENCE)
    cells = book(
        *BOTS_MET, *snapshots_met(snapshot, games=240), cell("based", reference.name, 5, 0)
    )
    found = fit_league(cells, [*BOT_PLAYERS, snapshot, reference])
    other = player("frozen-main", PlayerKind.REFERENCE)  # of no lineage
    book_of_both = [*cells, *book(cell("based", other.name, 5, 0))]
    assert other.name in fit_league(book_of_both, [*BOT_PLAYERS, snapshot, other]).names
    gap = found.difference(found.number(snapshot.name), found.number(reference.name))
    assert gap.low == pytest.approx(gap.high, abs=0.1)
    assert gap.value == pytest.approx(0.0, abs=0.1)


def test_a_stretch_may_hold_a_reference():
    snapshots = lineage(50_000, 1_000_000)
    references = [
        player(f"main.reference-{step}", PlayerKind.REFERENCE) for step in (60_000, 900_000)
    ]
    cells = book(*BOTS_MET, *snapshots_met(*snapshots, *references))
    climb = [cell("main@50000", bot, 500, 500) for bot in BOTS]
    found = fit_league(cells, [*BOT_PLAYERS, *snapshots, *references], climb)
    assert np.linalg.eigvalsh(found.covariance_NN).min() > -1e-9
    assert all(half_width(found, name) > 0.0 for name in found.names)


def test_how_far_a_lineage_wanders_and_pairs_deviate_is_measured():
    rng = np.random.default_rng(4)
    bots = {f"bot{n}": 6.0 + 2.0 * n for n in range(12)}
    steps = np.arange(1, 61) * 50_000
    x = np.log1p(steps / 50_000)
    for kappa, tau in (3.0, 0.0), (40.0, 0.0), (3.0, 2.0):
        noise = rng.normal(size=60) * np.sqrt(np.diff(x, prepend=0.0) * kappa)
        strengths = 5.0 + 4.0 * x + np.cumsum(noise)
        cells = []
        for step, strength in zip(steps, strengths, strict=True):
            for bot, other in bots.items():
                odds = np.exp((strength - other + rng.normal(0.0, tau)) / 3.4)
                wins = int(rng.binomial(60, odds / (1.0 + odds)))
                cells.append(cell(bot, f"main@{step}", 60 - wins, wins))
        players = [*lineage(*steps.tolist()), *(player(one, PlayerKind.BOT) for one in bots)]
        found = fit_league(book(*cells), players)
        assert kappa / 2 < found.kappas[0] < kappa * 2
        assert found.tau == pytest.approx(max(tau, 0.3), abs=0.3)
        assert found.widening < 1.05, "as deviations are no misfit"


def test_a_bot_that_a_learner_has_stopped_gaining_on_says_nothing_of_its_climb():
    """The learner doubles its odds against each snapshot, and beats the bots as ever."""
    rng = np.random.default_rng(5)
    steps = np.arange(1, 41) * 100_000
    snapshots = lineage(*steps.tolist())
    strengths = dict(zip(snapshots, 5.0 * np.log1p(steps / 50_000), strict=True))

    def met(one, other, gap):
        wins = int(rng.binomial(200, 1.0 / (1.0 + np.exp(-gap / 3.4))))
        return cell(one, other, wins, 200 - wins)

    among = [
        met(one.name, other.name, strengths[one] - strengths[other])
        for place, one in enumerate(snapshots)
        for other in snapshots[max(0, place - 4) : place]
    ]
    against = [met(one.name, bot, 3.0) for one in snapshots for bot in BOTS]
    found = fit_league(book(*among, *against), [*BOT_PLAYERS, *snapshots])
    ends = [snapshots[-1], snapshots[0]]
    climb = found.difference(*(found.number(one.name) for one in ends))
    assert climb.low < strengths[ends[0]] - strengths[ends[1]] < climb.high
    for bot in BOTS:
        lead = found.difference(found.number(snapshots[-1].name), found.number(bot))
        assert lead.low < 3.0 < lead.high, "what the bot is to the newest one"

"""Each scripted player's own way to play: the number that defines it, and the order among them."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from league.games.brawl import moves, rules
from league.games.brawl.bots import CLOCKWORK_SCRIPT
from league.games.brawl.game import BrawlGame
from league.games.brawl.layout import MIRROR_DELAY
from league.games.brawl.spec import BOTS, STATS

FRAMES_PER_MINUTE: Final = 1800


class BotTable(NamedTuple):
    """What all ordered pairs of bots did; the row's own."""

    names: tuple[str, ...]
    scores_BBM: NDArray[np.float32]  # 1, 0.5 or 0
    frames_BBM: NDArray[np.int32]
    stats_BBMS: NDArray[np.float32]

    def figure(
        self, stat: str, *, per_match: bool = False, also: tuple[str, ...] = ()
    ) -> dict[str, float]:
        """A stat of each character in its matches with the others, a frame or a match."""
        names = (*CHARACTERS, "based", *also)
        own = [self.names.index(name) for name in names]
        others = ~np.eye(len(own), dtype=bool)[..., None]
        frames_CCM = self.frames_BBM[np.ix_(own, own)]
        sums_C = (self.stats_BBMS[np.ix_(own, own)][..., STATS.index(stat)] * others).sum((1, 2))
        units_CCM = np.ones_like(frames_CCM) if per_match else frames_CCM
        figures_C = sums_C / (units_CCM * others).sum((1, 2))
        return dict(zip(names, figures_C.tolist(), strict=True))


def play_all(matches: int) -> BotTable:
    """`matches` (even) of every ordered pair: the same seeds once from either seat."""
    names = tuple(bot.name for bot in BOTS)
    size = len(names)
    row, column, k = (a.ravel() for a in np.indices((size, size, matches)))
    game, here, seat = BrawlGame(len(row)), np.arange(len(row)), k % 2
    game.bots_N2[here, seat], game.bots_N2[here, 1 - seat] = row, column
    game.reset((k // 2).astype(np.uint64))
    scores = np.full(len(row), np.nan, np.float32)
    stats, frames = np.zeros((len(row), len(STATS)), np.float32), np.zeros(len(row), np.int32)
    idle = game.idle_actions()
    for _ in range(game.spec.max_frames):
        game.step(idle)
        now = np.flatnonzero(game.ended_N & np.isnan(scores))
        scores[now] = np.where(seat[now] == 0, game.outcomes_N[now], 1 - game.outcomes_N[now])
        frames[now] = game.final_frames_N[now]
        stats[now] = game.final_stats_N2S[now, seat[now]]
    shape = (size, size, matches)
    return BotTable(
        names, scores.reshape(shape), frames.reshape(shape), stats.reshape(*shape, len(STATS))
    )


CHARACTERS = (
    *("aggressive", "defensive", "kiter", "aerial"),
    *("sig_spammer", "weapon_seeker", "edge_guarder"),
)
WITH_HABITS = ("camper", "fencer", "platform_holder")


@pytest.fixture(scope="module")
def table() -> BotTable:
    return play_all(12)


def best(figures: dict[str, float]) -> tuple[str, float, float]:
    """Whose figure is highest, how high, and the next one's."""
    ordered = sorted(figures.items(), key=lambda item: -item[1])
    return ordered[0][0], ordered[0][1], ordered[1][1]


def playing(first: str, second: str, matches: int = 8, seed: int = 0) -> BrawlGame:
    game = BrawlGame(matches)
    game.bots_N2[:, 0], game.bots_N2[:, 1] = game.spec.bot_index(first), game.spec.bot_index(second)
    game.reset(np.arange(matches, dtype=np.uint64) + np.uint64(seed))
    return game


def frames(game: BrawlGame, count: int):  # type: ignore[no-untyped-def]
    """Steps the game; yields both seats' records of matches that have not ended yet."""
    idle = np.zeros((game.num_matches, 2, 10), np.uint8)
    first = np.ones(game.num_matches, bool)
    for _ in range(count):
        game.step(idle)
        first &= ~game.ended_N
        yield game._players_N2[first]


def test_three_bots_are_held_out_and_all_are_told_apart() -> None:
    assert {bot.name for bot in BOTS if bot.held_out} == {"edge_guarder", "mirror", "drunk"}
    assert len({bot.name for bot in BOTS}) == len({bot.summary for bot in BOTS}) == 16


@pytest.mark.long
def test_the_defensive_one_dodges_and_hardly_moves(table: BotTable) -> None:
    name, dodges, next_best = best(table.figure("dodges"))
    assert name == "defensive"
    assert dodges * FRAMES_PER_MINUTE > 5.0
    assert dodges > 4 * next_best
    assert table.figure("speed_sum")["defensive"] < 2.0
    for players in frames(playing("defensive", "constant"), 600):
        assert (np.sign(players["x"][:, 0]) == players["side"][:, 0]).all()


def test_the_kiter_hits_and_keeps_away_in_between() -> None:
    game = playing("kiter", "constant", 16)
    apart: dict[bool, list[float]] = {True: [], False: []}
    for frame, players in enumerate(frames(game, 900)):
        free = (players["state"] != rules.KO).all(axis=1)
        away = frame % 180 > 110
        apart[away] += np.abs(players["x"][free, 0] - players["x"][free, 1]).tolist()
        if frame == 890:
            assert (players["damage"][:, 1] + 300 * (3 - players["stocks"][:, 1])).mean() > 10
    assert np.mean(apart[True]) > 4.5
    assert np.mean(apart[True]) > 1.2 * np.mean(apart[False])


@pytest.mark.long
def test_the_aerial_one_is_in_the_air(table: BotTable) -> None:
    name, air, next_best = best(table.figure("air_frames"))
    assert name == "aerial"
    assert air > 0.8
    assert air > next_best + 0.1


def test_the_sig_spammer_makes_heavy_attacks_alone_and_charges() -> None:
    seen, charged = set(), 0
    for players in frames(playing("sig_spammer", "based", 16), 1500):
        attacking = players[:, 0]["state"] == rules.ATTACK
        seen |= set(players[:, 0]["move"][attacking].tolist())
        charged = max(charged, int(players[:, 0]["charged"].max()))
    assert seen <= {moves.NSIG, moves.DSIG, moves.SSIG, moves.RECOVERY, moves.GROUNDPOUND}
    assert {moves.NSIG, moves.DSIG, moves.SSIG} <= seen
    assert 5 < charged <= 20


def test_the_weapon_seeker_fetches_weapons(table: BotTable) -> None:
    name, pickups, next_best = best(table.figure("pickups", per_match=True))
    assert name == "weapon_seeker"
    assert pickups > 1.0
    assert next_best == 0.0
    armed = [
        players["weapon"][:, 0] > 0 for players in frames(playing("weapon_seeker", "constant"), 700)
    ]
    assert max(mask.mean() for mask in armed if len(mask)) > 0.5


def test_the_edge_guarder_stands_at_the_pit_and_looks_over_it() -> None:
    for players in frames(playing("edge_guarder", "constant"), 400):
        guard = players[:, 0]
    assert np.abs(np.abs(guard["x"]) - 2.7).max() < 0.3
    assert (guard["facing"] == -guard["side"]).all()
    assert (np.sign(guard["x"]) == guard["side"]).all()


def test_the_mirror_repeats_after_half_a_second() -> None:
    game = playing("mirror", "random", 4)
    mirrored, original = [], []
    for players in frames(game, 300):
        mirrored.append(players["keys"][:, 0].tolist())
        original.append(players["keys"][:, 1].tolist())
    assert mirrored[MIRROR_DELAY:] == original[:-MIRROR_DELAY]
    assert mirrored[:MIRROR_DELAY] == [[0] * 4] * MIRROR_DELAY
    assert MIRROR_DELAY == rules.FRAMES_PER_SECOND // 2


def test_the_drunk_leaves_30_percent_of_its_keys_to_chance() -> None:
    """`based` never taunts or charges heavily: half of the keys left to chance are down."""
    down = np.zeros(10)
    count = 0
    for players in frames(playing("drunk", "constant", 64), 300):
        keys = players["keys"][:, 0]
        down += [(keys >> bit & 1).sum() for bit in range(10)]
        count += len(keys)
    for name in ("W", "H", "L", "K", "G"):
        assert down[rules.KEY_NAMES.index(name)] / count == pytest.approx(0.15, abs=0.01)
    assert down[rules.KEY_NAMES.index("J")] > down[rules.KEY_NAMES.index("K")]


def test_the_camper_waits_at_a_different_place_in_each_match() -> None:
    """Its camp is 2.5 to 6.5 units from the middle, on its own side in 6 of 10 matches."""
    game = playing("camper", "constant", 64, seed=50)
    for players in frames(game, 150):  # no camp changes sides in the first 150 frames
        camper = players[:, 0]
    own_side = camper["x"] * camper["side"] > 0
    assert 0.4 < own_side.mean() < 0.9
    assert np.std(np.abs(camper["x"][own_side])) > 0.8


def test_the_platform_holder_stays_over_the_pit_and_pounds() -> None:
    over, pounds, attacks = [], 0, 0
    for frame, players in enumerate(frames(playing("platform_holder", "aggressive", 32), 900)):
        holder = players[:, 0]
        attacking = holder["move"][holder["state"] == rules.ATTACK]
        pounds += int((attacking == moves.GROUNDPOUND).sum())
        attacks += len(attacking)
        if frame > 200:
            over += (np.abs(holder["x"]) < 2.0)[holder["state"] != rules.KO].tolist()
    assert np.mean(over) > 0.7
    assert pounds > 0.2 * attacks


def test_the_fencer_hits_most(table: BotTable) -> None:
    name, hits, next_best = best(table.figure("hits", also=WITH_HABITS))
    assert name == "fencer"
    assert hits > 1.5 * next_best


def test_random_presses_half_of_the_keys_and_clockwork_plays_its_list_once() -> None:
    listed = [keys for count, keys in CLOCKWORK_SCRIPT for _ in range(count)]
    drawn, played = [], []
    for players in frames(playing("random", "clockwork", 1), 400):
        drawn.append(int(players["keys"][0, 0]).bit_count())
        played.append(int(players["keys"][0, 1]))
    assert np.mean(drawn) == pytest.approx(5.0, abs=0.4)
    assert played == listed + [0] * (400 - len(listed))
    assert len(set(played)) > 4


def test_every_character_beats_random_and_is_beaten_by_somebody(table: BotTable) -> None:
    scores_BB = table.scores_BBM.mean(-1)
    for name in (*CHARACTERS, *WITH_HABITS, "based"):
        b = table.names.index(name)
        assert scores_BB[b, table.names.index("random")] >= 0.8, name
        assert min(scores_BB[b]) <= 0.5, name

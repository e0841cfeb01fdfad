"""The bots of the study of memory do what their names say, and its table compares seed by seed."""

import numpy as np
import pytest
from bench_programs import bench_program

from league.games.brawl import rules

memory = bench_program("memory")
SEEN = [2, 1, 2, 1, 1, 0, 1]
"""Hands of the other player in seven rounds."""
ANSWERS = {
    "rock": [0] * 7,
    "paper": [1] * 7,
    "scissors": [2] * 7,
    "chaser": [0, 2, 0, 2, 2, 1, 2],
    "echo": SEEN,
    "counter": [0, 2, 0, 2, 2, 2, 2],
    "contrary": [1] * 7,
    "markov": [1, 1, 2, 0, 2, 1, 1],
}
"""From the second round on."""


def hands(bot, seat, seen, matches=30):
    """What a bot took in each round [T, N] against these hands."""
    game, taken = memory.make_rps(matches), []
    game.bots_N2[:, seat] = game.spec.bot_index(bot)
    game.reset(np.arange(matches, dtype=np.uint64))
    for hand in [*seen, 0]:
        actions_N2A = game.idle_actions()
        actions_N2A[:, 1 - seat] = np.eye(3, dtype=np.uint8)[hand]
        game.step(actions_N2A)
        taken.append(game.played_N2A()[:, seat].argmax(-1))
    return np.array(taken)


@pytest.mark.parametrize("seat", [0, 1])
@pytest.mark.parametrize("bot", memory.HABITS)
def test_a_bot_has_its_habit(monkeypatch, bot, seat):
    monkeypatch.setattr(memory, "SLIP", 0.0)
    seen = SEEN * 4
    taken_TN = hands(bot, seat, seen)
    assert set(taken_TN[0]) == {0, 1, 2}
    before_TN, after_TN, seen_T1 = taken_TN[:-1], taken_TN[1:], np.array(seen)[:, None]
    if bot in ANSWERS:
        assert (after_TN[:7] == np.array(ANSWERS[bot])[:, None]).all()
    elif bot == "leaning":
        assert (after_TN == 1).mean() == pytest.approx(0.6, abs=0.06)
    elif bot == "win-stay":
        has_lost = (seen_T1 - before_TN) % 3 == 1
        stays_or_beats_TN = np.where(has_lost, (seen_T1 + 1) % 3, before_TN)
        assert (after_TN == stays_or_beats_TN).all()
    else:
        assert ((after_TN - before_TN) % 3 == {"cycle": 1, "backward": 2}[bot]).all()


def test_a_bot_slips_now_and_then():
    assert (hands("rock", 1, SEEN * 8) != 0).mean() == pytest.approx(2 * memory.SLIP / 3, abs=0.03)


def test_fighters_differ_in_what_they_press():
    """Each meets the plain one in eight matches."""
    names, pressed, hurt = list(memory.FIGHTERS), [], []
    game, rows = memory.HabitBrawl(8 * len(names)), np.arange(8 * len(names))
    stun = game.spec.observation_names.index("own stun_left")
    game.bots_N2[:, 0], game.bots_N2[:, 1] = names.index("plain"), rows // 8
    game.reset(rows.astype(np.uint64))
    for _ in range(400):
        hurt.append(game.observations_N2O[:, 1, stun] > 0.0)
        game.step(game.idle_actions(), 4)
        pressed.append(game.played_N2A()[:, 1])
    pressed_TBMA = np.array(pressed, int).reshape(400, len(names), 8, -1)
    hurt_TBM1 = np.array(hurt).reshape(400, len(names), 8, 1)
    pressed_BA, hurt_BA = pressed_TBMA.sum((0, 2)), (pressed_TBMA * hurt_TBM1).sum((0, 2))

    def times(bot, *keys, among_BA=pressed_BA):
        places = [int(key).bit_length() - 1 for key in keys]
        return among_BA[names.index(bot), places].sum()

    light, heavy = ([times(bot, key) for bot in names] for key in (rules.LIGHT, rules.HEAVY))
    is_heavy = [name == "heavy" for name in names]
    assert [many == 0 for many in light] == is_heavy
    assert [heavy[bot] > light[bot] for bot in range(len(names))] == is_heavy
    for bot, to, away in (
        ("leftward", rules.LEFT, rules.RIGHT),
        ("rightward", rules.RIGHT, rules.LEFT),
    ):
        assert times(bot, to, among_BA=hurt_BA) > 1.5 * times(bot, away, among_BA=hurt_BA)
    others = [times(bot, rules.JUMP) for bot in names if bot != "hopper"]
    assert times("hopper", rules.JUMP) > 1.2 * max(others)
    ways = rules.LEFT, rules.RIGHT
    assert times("shy", *ways) < times("slow-beat", *ways) < times("plain", *ways)


def test_the_table_compares_cells_seed_by_seed():
    found = {
        ("none", 0): {"points": 50.0, "first": 1.0, "second": 2.0},
        ("none", 1): {"points": 60.0, "first": 1.0, "second": 5.0},
        ("both", 0): {"points": 60.0, "first": 1.0, "second": 12.0},
        ("both", 1): {"points": 70.0, "first": 1.0, "second": 15.4},
    }
    none, lstm, _, both = (
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in memory.table("rps", found).splitlines()[2:]
    )
    assert none == ["none", "2", "55.0 ± 63.5", "1.0 ± 0.0", "3.5 ± 19.1", "", "", ""]
    assert lstm == ["LSTM", "0", *[""] * 6]
    assert both[5:] == ["10.0 ± 0.0", "0.0 ± 0.0", "10.2 ± 2.5"]

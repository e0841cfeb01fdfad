"""Kuhn's poker and Leduc hold'em by hands written out, and what each seat may see."""

from __future__ import annotations

import numpy as np
import pytest

from league.games.choice_game import ChoiceGame, mixed
from league.games.poker import KUHN, LEDUC, PokerRules
from league.games.registry import make_batched

LETTERS = {"f": 0, "c": 1, "r": 2}
WORDS = {"f": "fold", "c": "call", "r": "raise"}


def game_with(name: str, first: str, second: str, public: str = "") -> ChoiceGame:
    """One match in which the players, by who opens, hold these cards."""
    game = make_batched(name, 1)
    assert isinstance(game, ChoiceGame)
    for seed in range(5000):
        game.reset(np.array([seed], np.uint64))
        position = game._positions_N[0]
        cards = [game.rules._card(card) for card in (*position["cards"], position["public"])]  # type: ignore[attr-defined]
        if cards[: 2 + bool(public)] == [first, second, *([public] if public else [])]:
            return game
    raise AssertionError("no seed deals these cards")


def play(game: ChoiceGame, choices: str) -> None:
    """Plays `choices` (f, c, r; / between rounds is for the reader), who waits doing what it
    must.
    """
    for letter in choices.replace("/", ""):
        assert not game.ended_N[0], "the hand is over already"
        actions = game.idle_actions()
        (seat,) = np.flatnonzero(game.legal_N2A[0].sum(-1) > 1)
        actions[0, seat] = np.eye(3)[LETTERS[letter]]
        game.step(actions)


@pytest.mark.parametrize(
    ("name", "cards", "choices", "payoff"),
    [
        ("kuhn", "K J", "cc", 1),
        ("kuhn", "K J", "rc", 2),
        ("kuhn", "J K", "rf", 1),
        ("kuhn", "K J", "crf", -1),
        ("kuhn", "K Q", "crc", 2),
        ("leduc", "J0 K1 Q0", "cc/cc", -1),
        ("leduc", "J0 K1 J1", "cc/cc", 1),  # a pair beats the king
        ("leduc", "J0 K1 K0", "cc/cc", -1),
        ("leduc", "Q0 Q1 J0", "rc/rc", 0),  # same rank: the pot is shared
        ("leduc", "K0 Q0 J0", "rc/rc", 7),  # 1 + 2 + 4
        ("leduc", "Q0 K0 J0", "crrc/crrc", -13),
        ("leduc", "K0 J0 Q0", "rrf", -3),
        ("leduc", "K0 J0 Q0", "rc/crf", -3),
        ("leduc", "K0 J0 Q0", "rrc/rrf", -9),
    ],
)
def test_hands_end_with_the_chips_they_must(
    name: str, cards: str, choices: str, payoff: int
) -> None:
    game = game_with(name, *cards.split())
    first = int(game.frame(0)["seats"][1]["first"])  # the seat that opens
    play(game, choices)
    assert game.ended_N[0]
    assert game.final_frames_N[0] == len(choices.replace("/", ""))
    paid = game.reward_terms_N2K[0]
    assert paid[first].tolist() == [payoff, np.sign(payoff)]
    assert paid[1 - first].tolist() == [-payoff, -np.sign(payoff)]
    won = (1 + np.sign(payoff)) / 2
    assert game.outcomes_N[0] == (1 - won if first else won)
    assert game.final_stats_N2S[0, first, :2].tolist() == [payoff, 1]
    assert game.final_stats_N2S[0, 1 - first, :2].tolist() == [-payoff, 0]
    letters = choices.replace("/", "")
    # what the other did last
    last = game.final_observations_N2O[0, :, game.spec.own_size + 2 :][:, :3]
    assert last.argmax(-1).tolist().count(LETTERS[letters[-1]]) >= 1
    assert not game.final_observations_N2O[0, :, game.spec.own_size - 4].any()  # no seat's turn
    assert game.final_stats_N2S[0, :, 2:].sum(0).tolist() == [
        letters.count(letter) for letter in "fcr"
    ]


@pytest.mark.parametrize(
    ("name", "choices", "legal"),
    [
        ("kuhn", "", "cr"),
        ("kuhn", "cr", "fc"),
        ("leduc", "r", "fcr"),
        ("leduc", "rr", "fc"),
        ("leduc", "cc/", "cr"),
        ("leduc", "rrc/r", "fcr"),
        ("leduc", "rrc/crr", "fc"),
    ],
)
def test_what_is_legal_depends_on_the_raises_of_the_round(
    name: str, choices: str, legal: str
) -> None:
    game = make_batched(name, 1)
    assert isinstance(game, ChoiceGame)
    game.reset(np.zeros(1, np.uint64))
    play(game, choices)
    counts = game.legal_N2A[0].sum(-1)
    (seat,) = np.flatnonzero(counts > 1)
    assert [letter for letter in LETTERS if game.legal_N2A[0, seat, LETTERS[letter]]] == list(legal)
    assert game.legal_N2A[0, 1 - seat].tolist() == [False, True, False]
    frame = game.frame(0)
    rounds = [", ".join(WORDS[letter] for letter in one) for one in choices.split("/") if one]
    assert frame["table"]["choices"] == " / ".join(rounds)
    assert [one["acts"] for one in frame["seats"]] == [seat == 0, seat == 1]


@pytest.mark.parametrize("variant", [KUHN, LEDUC])
def test_nobody_sees_the_others_card_nor_the_public_one_before_its_time(variant) -> None:  # type: ignore[no-untyped-def]
    rules = PokerRules(variant)
    positions = rules.begin(np.arange(rules.deals))
    views = rules.observe(positions)
    for player in range(2):
        for card in range(len(variant.ranks) * variant.suits):
            same = views[positions["cards"][:, player] == card, player]
            assert len(np.unique(same, axis=0)) == 1
    assert len(np.unique(views[:, 0], axis=0)) == len(variant.ranks) * variant.suits


def test_every_deal_is_as_likely_and_each_seat_opens_half_of_the_hands() -> None:
    for name, deals in (("kuhn", 6), ("leduc", 120)):
        game = make_batched(name, 1000 * deals)
        assert isinstance(game, ChoiceGame)
        in_a_row = np.arange(game.num_matches, dtype=np.uint64)
        # as a caller gives them, and as they follow in place
        for seeds in (in_a_row, mixed(in_a_row)):
            game.reset(seeds)
            cards = game._positions_N["cards"].astype(int) @ [36, 6] + game._positions_N["public"]
            opens_N = game.stats_N2S[:, 0, 1]
            _, counts = np.unique(np.stack([cards, opens_N]), axis=1, return_counts=True)
            assert len(counts) == 2 * deals
            chi2 = ((counts - 500.0) ** 2 / 500.0).sum()
            assert abs(chi2 - (len(counts) - 1)) < 5 * (2 * len(counts)) ** 0.5


def test_caller_calls_and_aggressive_raises() -> None:
    game = make_batched("leduc", 500)
    spec = game.spec
    game.bots_N2[:] = [spec.bot_index("caller"), spec.bot_index("aggressive")]
    game.reset(np.arange(500, dtype=np.uint64))
    ended = np.zeros(500, bool)
    for _ in range(16):
        game.step(game.idle_actions())
        ended |= game.ended_N
        stats = game.final_stats_N2S[game.ended_N]
        assert (np.abs(stats[:, :, 0]) <= 7).all()  # only one of them raises, once a round
        assert not stats[:, 0, [2, 4]].any()
        assert (stats[:, 1, 4] == 2).all()
    assert ended.all()

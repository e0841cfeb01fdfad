"""Plays Kuhn poker and Leduc hold'em, two-player fixed-limit poker, with many hands at once.

Each player has a card and pays an ante of 1 chip. Player 0 opens every round. A round ends when a
player calls a raise or both check. After the last round the better hand wins the pot: a pair with
the public card, or else the higher rank.

Shape suffixes: N hands, 2 players, A actions, O observation width, D deals, C cards.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.games.choice_game import ChoiceGame
from league.games.choice_rules import RANDOM_BOT, ChoiceRules, Positions, ScriptedBot, always

ACTIONS = ("fold", "call", "raise")
FOLD, CALL, RAISE = range(3)
"""If there is no bet to call, a call is a check, a raise is a bet, and folding is not allowed."""


@dataclass(frozen=True, kw_only=True)
class PokerVariant:
    """Describes a variant of fixed-limit poker for two players with a card each.

    Attributes:
        ranks: letters of the ranks, lowest first.
        suits: copies of each rank.
        bets: chips that a raise adds, by betting round.
        raises: largest number of raises in a round.
        longest: number of choices in the longest hand.
    """

    name: str
    ranks: str
    suits: int
    bets: tuple[int, ...]
    raises: int
    longest: int
    bots: tuple[ScriptedBot, ...]


CALLER = ScriptedBot(
    name="caller", summary="checks and calls whatever it holds", strategy=always(CALL)
)
AGGRESSIVE = ScriptedBot(
    name="aggressive",
    summary="bets and raises while it may, then calls",
    strategy=always(RAISE, CALL),
)

ALPHA = 1 / 6
"""Kuhn's free parameter: how often the first player bets with the jack. Every value in [0, 1/3]
gives an equilibrium (H. W. Kuhn, "A simplified two-person poker", 1950). 1/6 is in the middle."""

# For each player, how often it bets, and how often it calls a bet, with a jack, a queen and a king.
_KUHN_NASH = np.array(
    [
        [[ALPHA, 0, 3 * ALPHA], [0, ALPHA + 1 / 3, 1]],
        [[1 / 3, 0, 1], [0, 1 / 3, 1]],
    ]
)


def kuhn_nash(
    positions_N: Positions, players_N: NDArray[np.intp], legal_NA: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Plays the equilibrium of Kuhn poker that `ALPHA` selects. Against this strategy, a first
    player loses at least 1/18 of the ante per hand on average.
    """
    # With a single suit, a card's number is its rank.
    rows, faces_bet_N = np.arange(len(players_N)), legal_NA[:, FOLD]
    ranks_N = positions_N["cards"][rows, players_N]
    chance_N = _KUHN_NASH[players_N, faces_bet_N.astype(np.intp), ranks_N]
    answers_NA = np.zeros(legal_NA.shape)
    # A player who faces a bet calls or folds, and any other player bets or checks.
    answers_NA[rows, np.where(faces_bet_N, CALL, RAISE)] = chance_N
    answers_NA[rows, np.where(faces_bet_N, FOLD, CALL)] = 1 - chance_N
    return answers_NA


KUHN = PokerVariant(
    name="kuhn",
    ranks="JQK",
    suits=1,
    bets=(1,),
    raises=1,
    longest=3,
    bots=(
        RANDOM_BOT,
        CALLER,
        AGGRESSIVE,
        ScriptedBot(name="nash", summary="plays Kuhn's equilibrium", strategy=kuhn_nash),
    ),
)
# Southey et al., "Bayes' bluff: opponent modelling in poker" (2005).
LEDUC = PokerVariant(
    name="leduc",
    ranks="JQK",
    suits=2,
    bets=(2, 4),
    raises=2,
    longest=8,
    bots=(RANDOM_BOT, CALLER, AGGRESSIVE),
)

NOBODY = -1
NOTHING = -1
_LETTERS = np.array(list("fcr"))
_WORDS: dict[str, str] = dict(zip("fcr", ACTIONS, strict=True))


class PokerRules(ChoiceRules):
    """Defines a hand of `variant`. A card's number is rank * suits + suit.

    The own part of an observation (about the player itself) has the player's number, its card
    (rank, and suit if there are several), whether it is the player's turn, and the legal choices.
    The rest has the chips in the pot (the opponent's, then the player's) and the opponent's last
    choice. With several rounds, the rest also has the round, the number of raises in it, and the
    public card once it is revealed.
    """

    version = "1"
    draws_sides = True
    action_names = ACTIONS
    payoff_unit = "chips"

    def __init__(self, variant: PokerVariant) -> None:
        self.variant = variant
        self.name, self.bots = variant.name, variant.bots
        self.longest = variant.longest
        self._rounds = len(variant.bets)
        cards = range(len(variant.ranks) * variant.suits)
        dealt = 2 if self._rounds == 1 else 3
        self._deals_DC = np.array(list(permutations(cards, dealt)), np.int8)
        self.deals = len(self._deals_DC)
        self.largest_payoff = 1.0 + variant.raises * sum(variant.bets)
        self._bets = np.array(variant.bets, np.int16)
        # for each card, its one-hot rank, and its one-hot suit if there are several
        ranks, suits = len(variant.ranks), variant.suits
        self._faces = np.repeat(np.eye(ranks, dtype=np.float32), suits, axis=0)
        card = [f"rank is {rank}" for rank in variant.ranks]
        if suits > 1:
            suit_C2 = np.tile(np.eye(suits, dtype=np.float32), (ranks, 1))
            self._faces = np.hstack([self._faces, suit_C2])
            card += [f"suit is {suit}" for suit in range(suits)]
        own = ["is player 0", "is player 1", *(f"own {face}" for face in card), "own turn"]
        own += [f"may {action}" for action in ACTIONS]
        rest = ["the other's chips in the pot", "own chips in the pot"]
        rest += [f"the other's last choice was {action}" for action in ACTIONS]
        if self._rounds > 1:
            rest += ["round", "raises in it", *(f"public {face}" for face in card)]
        self.observation_names, self.own_size = (*own, *rest), len(own)
        self.observation_size = len(self.observation_names)
        self.record = np.dtype(
            [
                ("cards", np.int8, (2,)),
                ("public", np.int8),
                ("round", np.int8),
                ("raises", np.int8),
                ("actor", np.int8),
                ("chips", np.int16, (2,)),
                ("last", np.int8, (2,)),
                ("moves", np.int8, (variant.longest,)),  # every choice made, in order
                ("turns", np.int8, (variant.longest,)),  # the round of each choice
                ("count", np.int8),
            ]
        )

    def begin(self, deals_N: NDArray[np.int64]) -> Positions:
        hands_N = np.zeros(len(deals_N), self.record)
        dealt_NC = self._deals_DC[deals_N]
        hands_N["cards"] = dealt_NC[:, :2]
        hands_N["public"] = dealt_NC[:, 2] if self._rounds > 1 else NOTHING
        hands_N["chips"] = 1
        hands_N["last"] = NOTHING
        return hands_N

    def legal(self, positions_N: Positions) -> NDArray[np.bool_]:
        chips_N2 = positions_N["chips"]
        acts_N2 = positions_N["actor"][:, None] == np.arange(2)
        legal_N2A = np.empty((len(positions_N), 2, len(ACTIONS)), np.bool_)
        legal_N2A[:, :, FOLD] = acts_N2 & (chips_N2 < chips_N2[:, ::-1])
        legal_N2A[:, :, CALL] = True  # this is also the only choice of a waiting player
        legal_N2A[:, :, RAISE] = acts_N2 & (positions_N["raises"] < self.variant.raises)[:, None]
        return legal_N2A

    def play(
        self, positions_N: Positions, choices_N2: NDArray[np.intp]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        rows, chips_N2 = np.arange(len(positions_N)), positions_N["chips"]
        actor_N = positions_N["actor"].astype(np.intp)
        choice_N = choices_N2[rows, actor_N]
        folds_N, raises_N = choice_N == FOLD, choice_N == RAISE
        opens_N = (actor_N == 0) & (positions_N["raises"] == 0)
        wanted_N = chips_N2[rows, 1 - actor_N] + raises_N * self._bets[positions_N["round"]]
        chips_N2[rows, actor_N] = np.where(folds_N, chips_N2[rows, actor_N], wanted_N)
        positions_N["last"][rows, actor_N] = choice_N
        positions_N["moves"][rows, positions_N["count"]] = choice_N
        positions_N["turns"][rows, positions_N["count"]] = positions_N["round"]
        positions_N["count"] += 1
        over_N = (choice_N == CALL) & ~opens_N
        last_N = positions_N["round"] == self._rounds - 1
        turns_N, shows_N = over_N & ~last_N, over_N & last_N
        ended_N = folds_N | shows_N
        positions_N["raises"] = np.where(turns_N, 0, positions_N["raises"] + raises_N)
        positions_N["round"] += turns_N
        positions_N["actor"] = np.where(ended_N, NOBODY, np.where(turns_N, 0, 1 - actor_N))
        # The payoff is the smaller number of chips. A player who folds has paid less, and at a
        # showdown both have paid the same.
        ranks_N2 = positions_N["cards"] // self.variant.suits
        pair_N2 = ranks_N2 == (positions_N["public"] // self.variant.suits)[:, None]
        strength_N2 = (ranks_N2 + pair_N2 * len(self.variant.ranks)).astype(np.int16)
        better_N = np.sign(strength_N2[:, 0] - strength_N2[:, 1])
        folded_N = np.where(actor_N == 0, -1, 1)
        winner_N = np.where(folds_N, folded_N, np.where(shows_N, better_N, 0))
        return winner_N * chips_N2.min(-1).astype(np.float64), ended_N

    def observe(self, positions_N: Positions) -> NDArray[np.float32]:
        n, face = len(positions_N), self._faces.shape[1]
        views_N2O = np.zeros((n, 2, self.observation_size), np.float32)
        views_N2O[:, :, :2] = np.eye(2)
        views_N2O[:, :, 2 : 2 + face] = self._faces[positions_N["cards"]]
        views_N2O[:, :, 2 + face] = positions_N["actor"][:, None] == np.arange(2)
        views_N2O[:, :, 3 + face : self.own_size] = self.legal(positions_N)
        rest_N2E = views_N2O[:, :, self.own_size :]
        chips_N2 = positions_N["chips"] / self.largest_payoff
        rest_N2E[:, :, 0], rest_N2E[:, :, 1] = chips_N2[:, ::-1], chips_N2
        rest_N2E[:, :, 2:5] = positions_N["last"][:, ::-1, None] == np.arange(len(ACTIONS))
        if self._rounds > 1:
            rest_N2E[:, :, 5] = positions_N["round"][:, None] / (self._rounds - 1)
            rest_N2E[:, :, 6] = positions_N["raises"][:, None] / self.variant.raises
            open_N1 = (positions_N["round"] > 0)[:, None]
            rest_N2E[:, :, 7:] = (self._faces[positions_N["public"]] * open_N1)[:, None]
        return views_N2O

    def label(self, position: np.void, player: int) -> str:
        """Names the player's position, its card, the public card and the choices by round.

        For example, in `second J1 K0:crc/r` the second player holds a jack, and the public card is
        a king. `_said` explains the letters of the choices.
        """
        shown = [self._card(position["cards"][player])]
        if position["round"] > 0:
            shown.append(self._card(position["public"]))
        return f"{('first', 'second')[player]} {' '.join(shown)}:{self._said(position)}"

    def describe(self, position: np.void) -> dict[str, Any]:
        open_now = self._rounds > 1 and position["round"] > 0
        words = [
            ", ".join(_WORDS[letter] for letter in actions)
            for actions in self._said(position).split("/")
        ]
        return {
            "players": [
                {
                    "card": self._card(position["cards"][player]),
                    "chips": int(position["chips"][player]),
                    "acts": int(position["actor"]) == player,
                    "first": player == 0,
                    "last": "" if last == NOTHING else ACTIONS[last],
                }
                for player, last in enumerate(position["last"])
            ],
            "public": self._card(position["public"]) if open_now else "",
            "choices": " / ".join(filter(None, words)),
        }

    def _card(self, card: int) -> str:
        rank, suit = divmod(int(card), self.variant.suits)
        return self.variant.ranks[rank] + (str(suit) if self.variant.suits > 1 else "")

    def _said(self, hand: np.void) -> str:
        """Returns the choices by round as `cc/rc`: f fold, c check or call, r bet or raise."""
        count = int(hand["count"])
        letters, rounds = _LETTERS[hand["moves"][:count]], hand["turns"][:count]
        return "/".join(
            "".join(letters[rounds == index]) for index in range(int(hand["round"]) + 1)
        )


def make_kuhn(num_matches: int, *, max_frames: int | None = None) -> ChoiceGame:
    """Makes N hands of Kuhn poker: three cards and a single bet."""
    return ChoiceGame(PokerRules(KUHN), num_matches, max_frames)


def make_leduc(num_matches: int, *, max_frames: int | None = None) -> ChoiceGame:
    """Makes N hands of Leduc hold'em: six cards, and two rounds with a public card between them."""
    return ChoiceGame(PokerRules(LEDUC), num_matches, max_frames)

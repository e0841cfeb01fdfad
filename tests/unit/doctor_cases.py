"""Set-ups that are broken in one place, the reason that must be named first, and what follows.

The thresholds were set by `CALIBRATED`; `FRESH` were made afterwards, in other games and with other
values, to see whether the thresholds hold where they were not fitted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import sick
import sick_agents as agents
import sick_environments as environments
import sick_games as games

from learner.doctor.setup import SetUp


@dataclass(frozen=True, kw_only=True)
class Case:
    """`follows` must stand under the cause, `may` can; anything else bad is a fault of the
    doctor.
    """

    key: str
    name: str
    make: Callable[[], SetUp]
    follows: frozenset[str] = frozenset()
    may: frozenset[str] = frozenset()
    failure: bool = True
    own_play: bool = True
    sizes: dict[str, Any] | None = None

    @property
    def id(self) -> str:
        return f"{self.key}-{self.name}"


def case(
    key: str, name: str, make: Callable[[], SetUp], follows: str = "", may: str = "", **rest
) -> Case:
    return Case(
        key=key,
        name=name.replace(" ", "_"),
        make=make,
        follows=frozenset(follows.split()),
        may=frozenset(may.split()),
        **rest,
    )


def setting(key: str, name: str, *flags: str, **rest) -> Case:
    """Settings alone: what the healthy game shows holds for those of the training."""
    own = any("game." in flag or "gamma" in flag or "normalize" in flag for flag in flags)
    return case(key, name, lambda: sick.set_up(*flags), own_play=own, **rest)


def board(key: str, name: str, game: str, *flags: str, **rest) -> Case:
    return case(key, name, lambda: sick.board(game, *flags), **rest)


def network(key: str, name: str, kind, **rest) -> Case:
    return case(key, name, lambda: replace(sick.set_up(), network=kind), own_play=False, **rest)


def environment(key: str, name: str, kind, **rest) -> Case:
    return case(key, name, lambda: replace(sick.set_up(), environment=kind), **rest)


def spoiled(
    key: str, name: str, after=None, *, of=sick.set_up, follows="", may="", failure=True, **how
) -> Case:
    if after is not None:
        how["after"] = after
    return case(key, name, lambda: sick.spoiled(of(), **how), follows, may, failure=failure)


def rate(value: str) -> tuple[str, ...]:
    return (
        f"learner.learning_rate={value}",
        "learner.learning_rate_final=none",
        "learner.desired_kl=none",
    )


def narrow(width: int, memory: int, layers: int = 1) -> dict[str, Any]:
    few = {"width": width, "attention_heads": 1, "feed_forward": width, "observation_hidden": width}
    return {"layers": layers, **few, "memory": memory, "head_widths": (memory,)}


USUAL = {"win": 10.0, "knockout": 5.0, "damage": 1.0, "toward_opponent": 0.6}
LARGE = {term: 1e4 * weight for term, weight in USUAL.items()}
SMALL = {term: 1e-8 * weight for term, weight in USUAL.items()}
REVERSED = {"win": -10.0, "knockout": -5.0, "damage": -1.0, "toward_opponent": 0.6}
TWO_MATCHES = (
    "agent.size=base",
    "agent.sequence_length=33",
    "learner.matches=2",
    "learner.n_steps=16",
)
FOUR_MATCHES = (
    *TWO_MATCHES[:2],
    "learner.matches=4",
    "learner.n_steps=8",
    "learner.batch_size=32",
)
AS_IT_IS = "learner.normalize_returns=false"

CALIBRATED = (
    case("1", "frozen", lambda: sick.playing(games.Frozen), "4", "11"),
    case("2", "deaf", lambda: sick.playing(games.Deaf), "4 7 8 O"),
    case("3", "unseeded", lambda: sick.playing(games.Unseeded)),
    case("4", "blindfold", lambda: sick.playing(games.Blindfold)),
    case(
        "5",
        "not a number",
        lambda: sick.playing(games.NotANumber),
        "11 12 13 14 15 16 18 20 B V",
        "3",
    ),
    setting("6", "no weights", *sick.weights(), follows="7 8 O V", may="10"),
    setting("7", "wins alone", *sick.weights(win=10.0), "learner.gamma=0.9"),
    setting("8", "huge", *sick.weights(**LARGE), AS_IT_IS, follows="12", may="V"),
    setting("8", "tiny", *sick.weights(**SMALL), follows="V"),
    setting("9", "one term", *sick.weights(win=0.1, toward_opponent=100.0), may="V"),
    setting("10", "reversed", *sick.weights(**REVERSED)),
    network("11", "detached", agents.Detached),
    network("12", "loud critic", agents.Loud, follows="V"),
    setting("13", "nothing held", sizes=narrow(4, 2, layers=2)),
    setting(
        "14", "by heart", *TWO_MATCHES, "learner.batch_size=32", "learner.n_epochs=4", failure=False
    ),
    network("15", "remembering", agents.Remembering, may="V"),
    environment("15", "endless", environments.Endless),
    setting("16", "too high", "learner.learning_rate=10"),
    setting("16", "too low", "learner.learning_rate=1e-10", "learner.learning_rate_final=1e-10"),
    setting("17", "one decision", "learner.n_steps=2", "learner.batch_size=2"),
    setting("18", "no key ever", "agent.key_bias=-10", may="16"),
    setting("19", "short-sighted", "learner.gamma=0.3", follows="7"),
    setting("20", "clip", "learner.clip_range=1e-7", "learner.n_epochs=8"),
    environment("B", "clipping", environments.Clipping),
)


def long(*flags: str) -> tuple[str, ...]:
    return "game.match_seconds=90", "game.frame_skip=2", *flags


def leduc() -> SetUp:
    return sick.board("leduc")


FAR = {"win": 3e3, "knockout": 2e3, "damage": 500.0, "toward_opponent": 200.0}
NEAR = {term: 1e-7 * weight for term, weight in FAR.items()}

FRESH = (
    spoiled("1", "a whisper", games.whisper),
    spoiled("2", "first seat deaf", before=games.first_seat_deaf, follows="7 8 O"),
    spoiled("3", "neighbour shows", games.neighbour_shows),
    spoiled("4", "mirror", games.mirror, failure=False),
    spoiled(
        "5",
        "late infinity",
        games.late_infinity,
        follows="B",
        may="3 16 11 12 13 14 15 18 20 V 2 O",
    ),
    spoiled("5", "unscaled", games.unscaled, failure=False),
    spoiled("6", "terms cut off", games.unpaid, follows="7 9 O", may="8 10 V"),
    setting(
        "7",
        "knockouts alone",
        *sick.weights(knockout=5.0),
        "game.match_seconds=60",
        "learner.gamma=0.95",
    ),
    setting("8", "brawl small", *sick.weights(**NEAR), AS_IT_IS, may="V"),
    setting("9", "damage drowns", "game.reward_weights.damage=2000", failure=False),
    spoiled("10", "paid to the other", games.paid_to_the_other, of=leduc),
    case(
        "11",
        "leduc frozen critic",
        lambda: replace(leduc(), network=agents.parts(agents.frozen_critic)),
    ),
    network(
        "12",
        "loud everywhere",
        agents.parts(agents.loud_everywhere),
        follows="18",
        may="13 16 17 V",
    ),
    setting("13", "three numbers", sizes=narrow(8, 3)),
    board("14", "leduc by heart", "leduc", *FOUR_MATCHES, failure=False),
    environment("15", "late ends", environments.LateEnds),
    setting("16", "1e-7", *rate("1e-7")),
    board(
        "17",
        "leduc one step",
        "leduc",
        "learner.batch_size=256",
        "learner.n_epochs=1",
        failure=False,
    ),
    case(
        "18",
        "leduc decided",
        lambda: replace(leduc(), network=agents.parts(agents.decided)),
        follows="16",
        may="11",
    ),
    board("19", "leduc 0.1", "leduc", "learner.gamma=0.1", follows="7"),
    board("20", "leduc clip", "leduc", "learner.clip_range=1e-6", "learner.n_epochs=8"),
    environment("B", "last step lost", environments.LosingTheLast),
    spoiled("O", "bots give up", games.bots_give_up, of=leduc, may="V"),
    network("V", "values of the wrong sign", agents.ContraryValue),
)

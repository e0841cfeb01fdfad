"""Set-ups that are broken in one place, the reason that must be named first, and what must stand
under it.

`CALIBRATED` are those that the thresholds were set by; `FRESH` were made afterwards, in other games
and with other values, to see whether the thresholds hold where they were not fitted.
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
    """Settings alone: what the healthy game shows holds for these, too."""
    return case(key, name, lambda: sick.set_up(*flags), own_play=False, **rest)


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
    setting("20", "target", "learner.target_kl=1e-12", "learner.n_epochs=8"),
    environment("B", "clipping", environments.Clipping),
)


def long(*flags: str) -> tuple[str, ...]:
    return "game.match_seconds=90", "game.frame_skip=2", "agent.history_stride=2", *flags


def leduc() -> SetUp:
    return sick.board("leduc")


SLOW_WINS = (
    "game.reward=sparse",
    "game.match_seconds=90",
    "game.frame_skip=1",
    "agent.history_stride=1",
)
HURT = {"damage": -3.0, "knockout": -10.0, "toward_opponent": 0.6, "win": 1.0}
FAR = {"win": 3e3, "knockout": 2e3, "damage": 500.0, "toward_opponent": 200.0}
NEAR = {term: 1e-7 * weight for term, weight in FAR.items()}

FRESH = (
    spoiled("1", "leduc shows nothing", games.nothing_seen, of=leduc, follows="4", may="11 12"),
    case("1", "stale", lambda: sick.spoiled(sick.set_up(), after=games.Stale()), "4"),
    spoiled("1", "a whisper", games.whisper),
    spoiled("2", "leduc hears nothing", of=leduc, before=games.idle, follows="4", may="7"),
    spoiled("2", "first seat deaf", before=games.first_seat_deaf, follows="7 8 O"),
    spoiled("2", "all keys down", before=games.all_keys_down, follows="4 7 8 O"),
    spoiled("3", "leduc unseeded", of=leduc, seeds=games.any_seed, may="14"),
    case(
        "3",
        "noise paid",
        lambda: sick.spoiled(sick.set_up(), after=games.Noise("reward_terms_N2K")),
    ),
    case(
        "3",
        "noise seen",
        lambda: sick.spoiled(sick.set_up(), after=games.Noise("observations_N2O")),
    ),
    spoiled("3", "neighbour shows", games.neighbour_shows),
    spoiled("4", "grey opponent", games.grey_opponent, of=leduc),
    spoiled("4", "mirror", games.mirror, failure=False),
    spoiled(
        "5",
        "late infinity",
        games.late_infinity,
        follows="B",
        may="3 16 11 12 13 14 15 18 20 V 2 O",
    ),
    spoiled(
        "5",
        "leduc not a number",
        games.last_not_a_number,
        of=leduc,
        follows="11 12 15 16 20 B V",
        may="13 14 18 17",
    ),
    spoiled("5", "unscaled", games.unscaled, failure=False),
    board(
        "6", "kuhn unpaid", "kuhn", "game.reward_weights.payoff=0.0", follows="7 8 O V", may="10"
    ),
    spoiled("6", "terms cut off", games.unpaid, follows="7 9 O", may="8 10 V"),
    setting(
        "7",
        "knockouts alone",
        *sick.weights(knockout=5.0),
        "game.match_seconds=60",
        "learner.gamma=0.95",
    ),
    case("7", "wins of long matches", lambda: sick.set_up(*SLOW_WINS)),
    board("8", "leduc tiny", "leduc", "game.reward_weights.payoff=1e-4", AS_IT_IS, may="V"),
    board(
        "8",
        "leduc huge",
        "leduc",
        "game.reward_weights.payoff=5000.0",
        AS_IT_IS,
        follows="12",
        may="V",
    ),
    setting("8", "brawl large", *sick.weights(**FAR), AS_IT_IS, follows="12", may="V"),
    setting("8", "brawl small", *sick.weights(**NEAR), AS_IT_IS, may="V"),
    setting("9", "damage drowns", "game.reward_weights.damage=2000", failure=False),
    setting("9", "danger drowns", "game.reward_weights.danger_zone=2000", may="V"),
    board("10", "leduc misere", "leduc", "game.reward_weights.payoff=-0.1"),
    spoiled("10", "paid to the other", games.paid_to_the_other, of=leduc),
    setting("10", "paid for falling", *sick.weights(**HURT)),
    network("11", "zero inputs", agents.parts(agents.zero_inputs), follows="13", may="14"),
    network("11", "faint", agents.parts(agents.faint), follows="13"),
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
    network("12", "louder critic", agents.parts(agents.louder_critic), may="V"),
    case("12", "leduc loud critic", lambda: replace(leduc(), network=agents.Loud), may="V"),
    board("13", "leduc narrow", "leduc", sizes=narrow(4, 1), may="17"),
    setting("13", "three numbers", sizes=narrow(8, 3)),
    board("14", "leduc by heart", "leduc", *FOUR_MATCHES, failure=False),
    network("15", "unroll remembers", agents.ForgetfulUnroll, follows="V", may="12 14"),
    case(
        "15",
        "leduc step remembers",
        lambda: replace(leduc(), network=agents.ForgetfulStep),
        may="V 14",
    ),
    environment("15", "late ends", environments.LateEnds),
    case(
        "15", "leduc half the ends", lambda: replace(leduc(), environment=environments.HalfTheEnds)
    ),
    setting("16", "0.1", *rate("0.1"), may="V"),
    board("16", "leduc 0.3", "leduc", *rate("0.3"), may="V"),
    setting("16", "1e-7", *rate("1e-7")),
    board("16", "leduc 1e-9", "leduc", *rate("1e-9")),
    board("17", "leduc four", "leduc", "learner.n_steps=4", "learner.batch_size=4", may="14"),
    setting("17", "sixteen", "learner.batch_size=16", failure=False),
    board(
        "17",
        "leduc one step",
        "leduc",
        "learner.batch_size=256",
        "learner.n_epochs=1",
        failure=False,
    ),
    setting("18", "every key", "agent.key_bias=9", may="16"),
    case(
        "18",
        "leduc decided",
        lambda: replace(leduc(), network=agents.parts(agents.decided)),
        follows="16",
        may="11",
    ),
    case(
        "18",
        "rps decided",
        lambda: replace(sick.board("matrix:rps"), network=agents.parts(agents.decided)),
        follows="16",
        may="11",
    ),
    board(
        "18",
        "leduc no bonus",
        "leduc",
        "learner.ent_coef=0",
        "learner.ent_coef_final=none",
        failure=False,
    ),
    setting("19", "0.6", "learner.gamma=0.6", follows="7"),
    case("19", "one", lambda: sick.set_up(*long("learner.gamma=1.0"))),
    board("19", "leduc 0.1", "leduc", "learner.gamma=0.1", follows="7"),
    setting("20", "clip 1e-4", "learner.clip_range=1e-4", "learner.n_epochs=6"),
    board("20", "leduc target", "leduc", "learner.target_kl=1e-7", "learner.desired_kl=none"),
    setting("20", "gradients cut off", "learner.max_grad_norm=1e-12"),
    case(
        "B",
        "leduc tight",
        lambda: replace(leduc(), environment=environments.ClippingTight),
        may="V",
    ),
    environment("B", "last step lost", environments.LosingTheLast),
    spoiled("O", "leduc alike", games.paid_alike, of=leduc, follows="10", may="V"),
    spoiled("O", "bots give up", games.bots_give_up, of=leduc, may="V"),
    network("V", "noisy values", agents.NoisyValue),
    network("V", "values of the wrong sign", agents.ContraryValue),
)
QUICK = (
    "1-a_whisper", "2-first_seat_deaf", "3-neighbour_shows", "4-mirror", "5-late_infinity", "5-unscaled",
    "6-terms_cut_off", "7-knockouts_alone", "8-brawl_small", "9-damage_drowns", "10-paid_to_the_other",
    "11-leduc_frozen_critic", "12-loud_everywhere", "13-three_numbers", "14-leduc_by_heart", "15-late_ends",
    "16-1e-7", "17-leduc_one_step", "18-leduc_decided", "19-leduc_0.1", "20-gradients_cut_off",
    "B-last_step_lost", "O-bots_give_up", "V-values_of_the_wrong_sign",
)  # fmt: skip
"""One or two of each reason, for every run of the suite; the others are marked slow."""

"""Plays clean matches (both players frozen) of a player against others, without a matchmaker, and
measures the player's play.

Shape suffixes: P pairs of matches, K measures, T frames, 2 seats or matches of a pair, A actions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from league.contest.league import League
from league.contest.members import Entrant, Finder, Member
from league.errors import DataCorrupt, InvalidInput
from league.evaluations import Who, pairs_of
from league.games.base import CHOICE
from league.games.registry import reward_weights
from league.games.settings import GameSettings
from league.metrics import Measured, wilson_interval
from league.replay import Bout, Recipe, Replay

if TYPE_CHECKING:
    from league.agent.contract import PlayingNetwork

LEAST_MATCHES = 4
"""Smallest number of matches: two pairs, because a single pair does not show how results vary."""
Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Score:
    """Measures the play of `player` against `opponent`.

    Attributes:
        matches, wins, draws, losses: numbers of matches, counting only pairs in which both matches
            were played to their end. For a mixture, these numbers are not weighted by the members'
            shares.
        failed: number of matches that could not be played to their end.
        win_rate: the share of matches that the player won, with Wilson's interval. A draw does not
            count as a win.
        means: mean values per match, by name. They are the game's statistics, the `reward` under
            the game's settings, and `seconds` (or `choices` in games of choices). Games that count
            damage and falls also have two ratios. `damage_ratio` is the damage dealt divided by the
            damage taken, and `seconds_per_fall` is the time played divided by the player's falls.
        actions: for each key or choice, the share of the player's decisions that used it. It is
            empty for a bot whose keys the game does not report.
    """

    player: str
    opponent: str
    matches: int
    wins: int
    draws: int
    losses: int
    failed: int
    win_rate: Measured
    means: Mapping[str, Measured]
    actions: Mapping[str, Measured]


@dataclass
class Benchmark:
    """Plays matches of `agent` against each of `opponents`, in pairs: each seed is played from both
    seats.

    Args:
        agent: a bot, a snapshot, a .safetensors file, a mixture, or a `PlayingNetwork` in memory.
        opponents: names of players, or a mapping from names of your choice to players. All
            opponents play the same seeds.
        matches: number of matches against each opponent, rounded up to whole pairs.
        greedy: whether networks take the likeliest keys or choices instead of sampling.
        seed: seed of the first pair and of sampled keys.
        run_dir: the folder of the run that has the snapshots, by default the newest in ``runs/``.
        game: the game's name, by default the run's game.
        finder: finds the players, instead of `run_dir` and `game`.
    """

    agent: Who | PlayingNetwork
    opponents: Sequence[str] | Mapping[str, Who]
    matches: int = 100
    greedy: bool = field(default=False, kw_only=True)
    seed: int = field(default=0, kw_only=True)
    run_dir: Path | str | None = field(default=None, kw_only=True)
    game: str | None = field(default=None, kw_only=True)
    finder: Finder | None = field(default=None, kw_only=True)

    def run(self, on_match: Callable[[str, int], None] | None = None) -> dict[str, Score]:
        """Plays all matches and returns a score for each opponent. After each match, `on_match` is
        called with the opponent and the number of finished matches against this opponent.

        Raises:
            NotFound: there is no such player.
            InvalidInput: the players can't meet each other, or there are too few matches.
            DataCorrupt: no pair could be played to its end.
        """
        if self.matches < LEAST_MATCHES:
            raise InvalidInput(f"{self.matches} matches are too few: ask for {LEAST_MATCHES}")
        asked = self.opponents
        asked = asked if isinstance(asked, Mapping) else dict(zip(asked, asked, strict=True))
        agents = [self.agent] if isinstance(self.agent, str | Mapping) else []
        whos: list[Who] = [*agents, *asked.values()]
        run_dir = None if self.run_dir is None else Path(self.run_dir)
        finder = self.finder or Finder(League(run_dir=run_dir), self.game)
        settings = finder.settings(whos)
        entrants = finder.entrants(settings.spec(), whos)
        if not isinstance(self.agent, str | Mapping):
            agent = Member(name="agent", digest="agent", network=self.agent)
            entrants.insert(0, Entrant(name="agent", members=(agent,), weights=(1.0,)))
        player, *opponents = entrants
        return {
            name: self._meet(name, settings, player, opponent, on_match or (lambda *_: None))
            for name, opponent in zip(asked, opponents, strict=True)
        }

    def _meet(
        self,
        name: str,
        settings: GameSettings,
        player: Entrant,
        opponent: Entrant,
        on_match: Callable[[str, int], None],
    ) -> Score:
        """Plays a player against an opponent. If they are mixtures, each member of `player` meets
        each member of `opponent`. The number of matches of two members is proportional to the
        product of the members' weights, but at least two.
        """
        from league.contest.matches import paired, play

        bouts, weights, pairs_wanted = list[Bout](), list[float](), -(-self.matches // 2)
        for member, weight in zip(player.members, player.weights, strict=True):
            for other, its_weight in zip(opponent.members, opponent.weights, strict=True):
                share = weight * its_weight
                count = pairs_of(share, pairs_wanted)
                seated, seed = (member.seated, other.seated), self.seed + len(bouts)
                both = member.contender, other.contender
                bouts += paired(*both, seated, 2 * count, seed)
                weights += [share / count] * count
        recipe = Recipe.of(settings)
        places = {bout.match_id(recipe): index for index, bout in enumerate(bouts)}
        everyone = [*player.members, *opponent.members]
        failures: dict[Bout, str] = {}
        replays = play(
            settings, everyone, bouts, seed=self.seed, greedy=self.greedy, failures=failures
        )
        seen: dict[int, _Seen] = {}
        for replay in replays:
            index = places[replay.match_id]
            seen[index] = _seen(settings, replay, index % 2)
            on_match(name, len(seen))
        pairs = [p for p in range(len(weights)) if {2 * p, 2 * p + 1} <= seen.keys()]
        if len(pairs) < 2:
            why = next(iter(failures.values()))
            raise DataCorrupt(f"the matches against {name} could not be finished: {why}")
        return _score(
            (player.name, opponent.name),
            [(seen[2 * p], seen[2 * p + 1]) for p in pairs],
            np.array([weights[p] for p in pairs]),
            settings,
            failed=len(failures),
        )


class _Seen(NamedTuple):
    """A match from a player's point of view. `uses_A` says how often the player used each key or
    choice, and `decisions` how often it decided. Both are 0 if the player's actions are unknown.
    """

    outcome: float
    totals: Mapping[str, float]
    uses_A: Floats
    decisions: int


def _seen(settings: GameSettings, replay: Replay, seat: int) -> _Seen:
    spec = settings.spec()
    weights = reward_weights(spec, settings.reward, settings.reward_weights)
    terms = replay.terms[seat]
    paid = sum(w * terms[term] for w, term in zip(weights, spec.reward_terms, strict=True))
    totals = {name: total for name, total in replay.stats[seat].items() if name != "spawn_side"}
    totals |= {"seconds": replay.frames / spec.frames_per_second, "reward": float(paid)}
    if spec.action_kind == CHOICE:
        totals["choices"] = totals.pop("seconds")
    played_TA = replay.actions_T2A[:, seat]
    if replay.free_T2 is not None:
        played_TA = played_TA[replay.free_T2[:, seat]]
    if replay.seats[seat].bot:  # the game does not report its actions
        played_TA = played_TA[:0]
    outcome = replay.outcome if seat == 0 else 1.0 - replay.outcome
    return _Seen(outcome, totals, played_TA.sum(0, dtype=np.float64), len(played_TA))


def _score(
    names: tuple[str, str],
    pairs: Sequence[tuple[_Seen, _Seen]],
    weight_P: Floats,
    settings: GameSettings,
    *,
    failed: int,
) -> Score:
    spec = settings.spec()
    outcome_P2 = np.array([[match.outcome for match in both] for both in pairs])
    uses_PA = np.array([first.uses_A + second.uses_A for first, second in pairs])
    decisions_P = np.array([float(first.decisions + second.decisions) for first, second in pairs])
    total_P = {
        name: np.array([first.totals[name] + second.totals[name] for first, second in pairs])
        for name in pairs[0][0].totals
    }
    matches_P = np.full(len(pairs), 2.0)
    means = {name: ratio(one_P, matches_P, weight_P) for name, one_P in total_P.items()}
    if {"damage_dealt", "damage_taken", "falls"} <= total_P.keys():
        logs: Any = {"least": 3.0, "logs": True}
        dealt_P, taken_P = total_P["damage_dealt"], total_P["damage_taken"]
        means["damage_ratio"] = ratio(dealt_P, taken_P, weight_P, **logs)
        means["seconds_per_fall"] = ratio(total_P["seconds"], total_P["falls"], weight_P, **logs)
    actions = {
        name: ratio(used_P, decisions_P, weight_P)
        for name, used_P in zip(spec.action_names, uses_PA.T, strict=True)
    }
    return Score(
        player=names[0],
        opponent=names[1],
        matches=outcome_P2.size,
        wins=int((outcome_P2 == 1.0).sum()),
        draws=int((outcome_P2 == 0.5).sum()),
        losses=int((outcome_P2 == 0.0).sum()),
        failed=failed,
        win_rate=win_rate(outcome_P2 == 1.0, weight_P),
        means=means,
        actions=actions if decisions_P.any() else {},
    )


def win_rate(won_P2: NDArray[np.bool_], weight_P: Floats) -> Measured:
    """Computes the weighted share of matches that were won, with its 95 % interval.

    The interval is Wilson's, for the effective number of independent matches. This number is
    2 / Σ w² (Kish), where w is a pair's weight and the weights sum to 1. If the two matches of a
    pair have a positive correlation ρ, the effective number is divided by 1 + ρ.

    Args:
        won_P2: whether each match of each pair was won.
        weight_P: weights of the pairs.

    Returns:
        The share with its 95 % interval.
    """
    weight_P = weight_P / weight_P.sum()
    share = min(float(weight_P @ won_P2.mean(1)), 1.0)
    spread_P2 = won_P2 - share
    alike = 0.0
    if 0.0 < share < 1.0:
        alike = max(0.0, float(weight_P @ spread_P2.prod(1)) / (share * (1.0 - share)))
    worth = 2.0 / float(weight_P @ weight_P) / (1.0 + alike)
    interval = wilson_interval(share * worth, worth)
    return Measured(share, interval.low, interval.high)


def ratio(
    top_P: Floats, bottom_P: Floats, weight_P: Floats, *, least: float = 0.0, logs: bool = False
) -> Measured:
    """Computes Σ w top / Σ w bottom over pairs of matches, with a linearised interval.

    The pairs are independent, so their residuals top − ratio · bottom give the standard error
    (Cochran, "Sampling Techniques", 1977, 6.4). The interval uses Student's t with the effective
    number of pairs.

    Args:
        top_P: numerators, summed over both matches of each pair.
        bottom_P: denominators, summed over both matches of each pair.
        weight_P: weights of the pairs.
        least: lower limit of the sum of `bottom_P` over all pairs. A smaller sum is replaced by
            `least`. For counts `least` is 3: if n pairs have no event, the rate may still be as
            high as 3 / n (with 95 % confidence).
        logs: whether to compute the interval for the logarithm of the ratio. This suits ratios
            whose numerator and denominator are both random.

    Returns:
        The ratio with its 95 % interval.
    """
    weight_P = weight_P / weight_P.sum()
    bottom = max(float(weight_P @ bottom_P), least / len(weight_P))
    value = float(weight_P @ top_P) / bottom if bottom else 0.0
    worth = 1.0 / float(weight_P @ weight_P)
    squares = float(weight_P**2 @ (top_P - value * bottom_P) ** 2) * worth / (worth - 1.0)
    half = float(stdtrit(worth - 1.0, 0.975)) * math.sqrt(squares) / bottom if bottom else 0.0
    if logs and value > 0.0:
        wide = math.exp(min(half / value, 700.0))
        return Measured(value, value / wide, value * wide)
    low = value - half
    return Measured(value, max(low, 0.0) if (top_P >= 0.0).all() else low, value + half)

"""Makes a clone of a league's member, and measures how well the clone plays like it."""

from __future__ import annotations

import itertools
import math
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from league.agent.device import choose_device
from league.agent.network import AgentNetwork
from league.agent.snapshot import SnapshotCard, load_snapshot
from league.contest.matches import bouts_of, play
from league.contest.members import Entrant, Member
from league.contest.recordings import say_failed
from league.errors import DataCorrupt
from league.games.base import CHOICE
from league.games.settings import GameSettings
from league.metrics import Measured, mean_interval, wilson_interval
from league.replay import SUFFIX, Bout, Recipe, Replay, save_replay
from league.runs.blobs import BlobFolder
from league.settings.base import Sections
from learner.cloning.demonstrations import demonstrations
from learner.cloning.training import accuracy, make_clone

ROWS = 32
"""Matches at once. A slow player finishes them after the time is up, so there are not more."""
DISTURB = 0.05
"""Share of the frames in which a bot or a rival makes a mistake, so that a clone learns how it
recovers (docs/cloning.md).
"""
CLEAN, DIRECT = 1 << 32, 1 << 33
"""Seeds of the matches that measure begin here. The matches to learn from have lower seeds."""
MUCH = 0.1
"""Points a match by which a clone that is much worse is behind at least."""

Numbered = dict[int, Replay]
"""Matches by their place in the order of `_bouts`."""


@dataclass(frozen=True, kw_only=True)
class Likeness:
    """Says how well a clone plays like its original. Points are 1 for a win and ½ for a draw.

    Attributes:
        clone, original: their names.
        accuracy: share of the original's decisions in new matches that the clone would make, too.
        commonest: the same share for a player that always makes the commonest decision.
        decisions: number of these decisions.
        points: for each opponent the points of the clone and of the original in the same matches.
        lead: the clone's points a match against these opponents, less the original's.
        direct: the clone's points in matches against the original.
    """

    clone: str
    original: str
    accuracy: Measured
    commonest: float
    decisions: int
    points: Mapping[str, tuple[list[float], list[float]]]
    lead: Measured
    direct: list[float]

    def sentences(self) -> Iterator[str]:
        """Yields the findings for people, the verdict last."""
        low, high = 100 * self.lead.low, 100 * self.lead.high
        yield (
            f"{self.clone} makes {_percent(self.accuracy)} of {self.original}'s decisions in "
            f"matches that it has not seen ({self.decisions:,} decisions, of which the commonest "
            f"is {100 * self.commonest:.1f}%)"
        )
        yield (
            f"it scores {100 * self.lead.value:+.1f} points in 100 matches, compared with "
            f"{self.original} against the same opponents (95% interval {low:+.1f} to {high:+.1f})"
        )
        score = share_of(self.direct)
        yield f"it scores {_percent(score)} of {len(self.direct)} matches against {self.original}"
        best = min(self.lead.high, score.high - 0.5)
        if best < -MUCH:
            yield (
                f"{self.clone} plays much worse than {self.original}: it is a weak sparring "
                f"partner, and who beats it may lose to {self.original} (more --minutes may help)"
            )
        elif best < 0:
            yield f"{self.clone} plays worse than {self.original}"
        else:
            yield f"these matches don't show that {self.clone} plays worse than {self.original}"


def share_of(points: Sequence[float]) -> Measured:
    """Returns the mean of points with Wilson's 95 % interval."""
    bounds = wilson_interval(sum(points), len(points))
    return Measured(sum(points) / max(1, len(points)), bounds.low, bounds.high)


def difference(first: Measured, second: Measured) -> Measured:
    """Returns the difference of two shares with a 95 % interval from theirs.

    Source: R. G. Newcombe, "Interval estimation for the difference between independent
    proportions", Statistics in Medicine 17 (1998), method 10. Matches on common seeds are no less
    alike than independent matches, so the interval is not too narrow.
    """
    value = first.value - second.value
    low = math.hypot(first.value - first.low, second.high - second.value)
    high = math.hypot(first.high - first.value, second.value - second.low)
    return Measured(value, value - low, value + high)


def _percent(share: Measured) -> str:
    return f"{100 * share.value:.1f}% ({100 * share.low:.0f}–{100 * share.high:.0f}%)"


@dataclass(frozen=True, kw_only=True)
class Original:
    """Is a member that is cloned, with its opponents.

    Attributes:
        settings: the game.
        entrant: the member.
        opponents: its opponents, without itself.
        seed: the first seed.
        seconds: time for the matches to learn from, and as much again for those that measure.
        show: receives lines about the progress.
    """

    settings: GameSettings
    entrant: Entrant
    opponents: Sequence[Entrant]
    seed: int
    seconds: float
    show: Callable[[str], None]

    @property
    def member(self) -> Member:
        """The member."""
        return self.entrant.members[0]

    def cloned(self, sections: Sections, blobs: BlobFolder) -> tuple[str, SnapshotCard]:
        """Plays the member against its opponents and itself, and learns from these matches.

        Args:
            sections: the settings.
            blobs: folder for the clone.

        Returns:
            The digest of the clone's weights, and its card.

        Raises:
            DataCorrupt: no match could be played to its end.
        """
        has_keys = self.settings.spec().action_kind != CHOICE
        errs = has_keys and (self.member.bot is not None or self.member.is_rival)
        pace = self.settings.frame_skip if errs and self.member.bot is not None else 1
        field = [*self.opponents, self.entrant]
        bouts = self._timed(_bouts(self.entrant, field, self.seed, errs=errs), self.seconds)
        disturb = DISTURB if errs else 0.0
        with tempfile.TemporaryDirectory(prefix="kumite-clone-") as folder:
            for replay in self._played(
                "to learn from", bouts, field, pace=pace, disturb=disturb
            ).values():
                save_replay(Path(folder) / f"{replay.match_id}{SUFFIX}", replay)
            device, _ = choose_device()
            return make_clone(Path(folder), self.member.name, sections, blobs, device, self.show)

    def likeness(self, clone: Member) -> Likeness:
        """Plays new matches of the member and its clone, and compares the two players.

        Both meet the same opponents on the same seeds, from both seats. Then they meet each other.

        Raises:
            DataCorrupt: no match could be played to its end.
        """
        entrant = Entrant(name=clone.name, members=(clone,), weights=(1.0,))
        field, first = self.opponents, self.seed + CLEAN
        bouts = self._timed(_bouts(self.entrant, field, first), self.seconds / 2)
        own = self._played(f"of {self.member.name}, to compare", bouts, [*field, self.entrant])
        bouts = itertools.islice(_bouts(entrant, field, first), max(own) + 1)
        its = self._played(f"of {clone.name}, to compare", bouts, [*field, entrant])
        direct = self._timed(_bouts(entrant, [self.entrant], self.seed + DIRECT), self.seconds / 2)
        met = self._played(
            f"of {clone.name} and {self.member.name}", direct, [entrant, self.entrant]
        )
        assert clone.blobs is not None
        network, card = load_snapshot(clone.blobs, clone.digest)
        assert isinstance(network, AgentNetwork)
        seen = demonstrations(
            [(Path(replay.match_id), replay) for replay in own.values()],
            self.member.name,
            frame_skip=card.frame_skip,
        )
        made = np.concatenate([one.actions_TA[one.decided_T] for one in seen])
        counts = np.unique(made, axis=0, return_counts=True)[1]
        shares = mean_interval([share - 0.5 for share in accuracy(network, seen)], 0.5)
        points: dict[str, tuple[list[float], list[float]]] = {one.name: ([], []) for one in field}
        for number in sorted(its.keys() & own.keys()):
            clones, originals = points[field[number // 2 % len(field)].name]
            clones.append(_points(number, its[number]))
            originals.append(_points(number, own[number]))
        columns = zip(*points.values(), strict=True)
        all_clones, all_originals = (list(itertools.chain(*column)) for column in columns)
        return Likeness(
            clone=clone.name,
            original=self.member.name,
            accuracy=Measured(*(x + 0.5 for x in (shares.value, shares.low, shares.high))),
            commonest=counts.max() / counts.sum(),
            decisions=len(made),
            points=points,
            lead=difference(share_of(all_clones), share_of(all_originals)),
            direct=[_points(number, replay) for number, replay in met.items()],
        )

    def _timed(self, bouts: Iterable[Bout], seconds: float) -> Iterator[Bout]:
        """Yields pairs of bouts until the time is up. All of them are played to their end, so that
        long matches count as much as short ones.
        """
        least, ends = max(ROWS, 2 * len(self.opponents)), time.monotonic() + seconds
        for number, bout in enumerate(bouts):
            if number >= least and number % 2 == 0 and time.monotonic() > ends:
                return
            yield bout

    def _played(
        self,
        which: str,
        bouts: Iterable[Bout],
        entrants: Sequence[Entrant],
        *,
        pace: int = 1,
        disturb: float = 0.0,
    ) -> Numbered:
        recipe, numbers, played = Recipe.of(self.settings), dict[str, int](), Numbered()
        failures, started = dict[Bout, str](), time.monotonic()

        def noted() -> Iterator[Bout]:
            for number, bout in enumerate(bouts):
                numbers[bout.match_id(recipe)] = number
                yield bout

        for replay in play(
            self.settings,
            [member for entrant in entrants for member in entrant.members],
            noted(),
            seed=self.seed,
            greedy=False,
            failures=failures,
            pace=pace,
            disturb=disturb,
            rows=ROWS,
        ):
            played[numbers[replay.match_id]] = replay
            self.show(f"{time.monotonic() - started:.0f} s: {len(played)} matches {which}")
        say_failed(list(failures.values()))
        if not played:
            why = next(iter(failures.values()))
            raise DataCorrupt(f"no match of {self.member.name} could be played to its end: {why}")
        return played


def _bouts(
    player: Entrant, opponents: Sequence[Entrant], seed: int, *, errs: bool = False
) -> Iterator[Bout]:
    """Yields a pair of matches, with swapped seats, against each opponent in turn, without an end.
    In even places the player has the first seat.
    """
    for number, opponent in enumerate(itertools.cycle(opponents)):
        yield from bouts_of(player, opponent, 2, seed + 2 * number, errs=errs)


def _points(number: int, replay: Replay) -> float:
    return replay.outcome if number % 2 == 0 else 1.0 - replay.outcome

"""Clones a member of a league, and measures how closely the clone plays like the member."""

from __future__ import annotations

import itertools
import math
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
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
"""Number of matches played at once. When the time is up, all matches in progress are still
finished. With more matches at once, a slow player would exceed its time by too much.
"""
MOST = 400
"""Largest number of matches of each kind: to learn from, against the opponents, and against the
original (the cloned player). Learning from more matches would take too long.
"""
DISTURB = 0.05
"""Share of the frames of a bot or a rival (another person's agent) in which the recorder replaces
the player's keys with keys that the player held at an earlier moment (docs/cloning.md).
"""
SHARP = 0.3
"""Temperature of the clones of bots and rivals, if the actions are keys. Most bots and rivals are
deterministic. A clone that samples its keys at temperature 1 makes mistakes that such a player does
not make (measured in docs/rivals.md).
"""
CLEAN, DIRECT = 1 << 32, 1 << 33
"""Numbers that are added to the seeds of the matches that measure a clone, so that these matches
share no seed with the matches to learn from. `CLEAN` is for matches against the opponents of the
original (the cloned player), and `DIRECT` for matches against the original itself.
"""
MUCH = 0.1
"""Difference in points per match. A clone counts as much worse than its original (the cloned
player) if, with 95 % confidence, the clone's score is lower by more than this difference. The
clone's score against other opponents is compared with the original's score, and the clone's score
in direct matches with ½.
"""


@dataclass(frozen=True, kw_only=True)
class Likeness:
    """Compares a clone with its original, the cloned player. A win counts 1 point, and a draw ½.

    Attributes:
        clone, original: names of the two players.
        accuracy: share of the original's decisions in which the clone would decide the same. The
            decisions are from matches that the clone has not learnt from.
        commonest: frequency of the most common decision among the original's decisions. A clone
            that always made this decision would have this `accuracy`.
        decisions: number of the original's decisions from which `accuracy` and `commonest` are
            computed.
        points: for each opponent, the points of the clone and the points of the original. Both have
            played the opponent on the same seeds.
        direct: the clone's points in matches against the original.
    """

    clone: str
    original: str
    accuracy: Measured
    commonest: float
    decisions: int
    points: Mapping[str, tuple[Sequence[float], Sequence[float]]]
    direct: Sequence[float]

    @property
    def lead(self) -> Measured:
        """The clone's points per match against the opponents minus the points of the original (the
        cloned player), with a 95 % interval.

        Source: R. G. Newcombe, "Interval estimation for the difference between independent
        proportions", Statistics in Medicine 17 (1998), method 10.
        """
        columns = zip(*self.points.values(), strict=True)
        clone, original = (share_of([*itertools.chain(*column)]) for column in columns)
        value = clone.value - original.value
        below = math.hypot(clone.value - clone.low, original.high - original.value)
        above = math.hypot(clone.high - clone.value, original.value - original.low)
        return Measured(value, value - below, value + above)

    def sentences(self) -> Iterator[str]:
        """Yields the findings as sentences, the verdict last."""
        clone, original, lead, direct = self.clone, self.original, self.lead, share_of(self.direct)
        yield (
            f"{clone} makes {_percent(self.accuracy)} of {original}'s decisions in matches that it "
            f"has not seen ({self.decisions:,} decisions, of which {100 * self.commonest:.1f}% are "
            "the commonest)"
        )
        yield (
            f"it scores {100 * lead.value:+.1f} points in 100 matches, compared with {original} "
            f"against the same opponents (95% interval {100 * lead.low:+.1f} to "
            f"{100 * lead.high:+.1f})"
        )
        yield f"it scores {_percent(direct)} of {len(self.direct)} matches against {original}"
        best = min(lead.high, direct.high - 0.5)
        if best < -MUCH:
            yield (
                f"{clone} plays much worse than {original}: who beats it may lose to {original} "
                "(more --minutes may help)"
            )
        elif best < 0:
            yield f"{clone} plays worse than {original}"
        else:
            yield f"these matches don't show that {clone} plays worse than {original}"


def share_of(points: Sequence[float]) -> Measured:
    """Returns the mean of the points of several matches, with Wilson's 95 % interval."""
    bounds = wilson_interval(sum(points), len(points))
    return Measured(sum(points) / max(1, len(points)), bounds.low, bounds.high)


def _percent(share: Measured) -> str:
    return f"{100 * share.value:.1f}% ({100 * share.low:.0f}–{100 * share.high:.0f}%)"


@dataclass(frozen=True, kw_only=True)
class Original:
    """Clones a member, and compares the clone with it.

    Attributes:
        settings: settings of the game.
        entrant: the member to clone, as it enters matches.
        opponents: the member's opponents, not including the member.
        seed: seed of the first match to learn from.
        seconds: time for playing the matches to learn from. The matches that measure the clone get
            the same time.
        temperature: as for `make_clone`. None means `SHARP` for bots and rivals if the actions are
            keys, otherwise 1.
        show: receives lines about the progress.
    """

    settings: GameSettings
    entrant: Entrant
    opponents: Sequence[Entrant]
    seed: int
    seconds: float
    temperature: float | None
    show: Callable[[str], None]

    def cloned(self, sections: Sections, blobs: BlobFolder) -> tuple[str, SnapshotCard]:
        """Plays the member against its opponents and itself, and trains the clone on these matches.

        Args:
            sections: the settings.
            blobs: folder for the clone.

        Returns:
            The digest of the clone's weights, and its card.

        Raises:
            DataCorrupt: no match could be played to its end.
        """
        member, has_keys = self.entrant.members[0], self.settings.spec().action_kind != CHOICE
        is_bot = has_keys and member.bot is not None
        # Bots and rivals are disturbed only if the actions are keys. A wrong choice may be illegal.
        errs = is_bot or (has_keys and member.is_rival)
        played = self._played(
            (self.entrant, [*self.opponents, self.entrant]),
            self.seed,
            self.seconds,
            pace=self.settings.frame_skip if is_bot else 1,
            disturb=DISTURB if errs else 0.0,
        )
        temperature = self.temperature or (SHARP if errs else 1.0)
        with tempfile.TemporaryDirectory(prefix="kumite-clone-") as folder:
            for replay in played.values():
                save_replay(Path(folder) / f"{replay.match_id}{SUFFIX}", replay)
            device, _ = choose_device()
            return make_clone(
                Path(folder), member.name, sections, blobs, device, self.show, temperature
            )

    def likeness(self, clone: Member) -> Likeness:
        """Plays new matches of the member and its clone, and compares the two players.

        Both players meet the same opponents on the same seeds, from both seats. Then the two
        players meet each other.

        Raises:
            DataCorrupt: no match could be played to its end.
        """
        member, field = self.entrant.members[0], self.opponents
        copy = Entrant(name=clone.name, members=(clone,), weights=(1.0,))
        first, half = self.seed + CLEAN, self.seconds / 2
        own = self._played((self.entrant, field), first, half)
        its = self._played((copy, field), first, 0.0, least=max(own) + 1)
        direct = self._played((copy, [self.entrant]), self.seed + DIRECT, half)
        points: dict[str, tuple[list[float], list[float]]] = {one.name: ([], []) for one in field}
        for number in own.keys() & its.keys():
            of_clone, of_original = points[field[number // 2 % len(field)].name]
            of_clone.append(_points(number, its[number]))
            of_original.append(_points(number, own[number]))
        assert clone.blobs is not None
        network, card = load_snapshot(clone.blobs, clone.digest)
        assert isinstance(network, AgentNetwork)
        replays = [(Path(replay.match_id), replay) for replay in own.values()]
        seen = demonstrations(replays, member.name, frame_skip=card.frame_skip)
        made = np.concatenate([one.actions_TA[one.decided_T] for one in seen])
        counts = np.unique(made, axis=0, return_counts=True)[1]
        right = mean_interval([share - 0.5 for share in accuracy(network, seen)], 0.5)
        return Likeness(
            clone=clone.name,
            original=member.name,
            accuracy=Measured(right.value + 0.5, right.low + 0.5, right.high + 0.5),
            commonest=counts.max() / counts.sum(),
            decisions=len(made),
            points=points,
            direct=[_points(number, replay) for number, replay in direct.items()],
        )

    def _played(
        self,
        sides: tuple[Entrant, Sequence[Entrant]],
        seed: int,
        seconds: float,
        *,
        least: int = 0,
        pace: int = 1,
        disturb: float = 0.0,
    ) -> dict[int, Replay]:
        """Plays a player against each of its opponents in turn, in pairs of matches with swapped
        seats.

        No new pair begins when the time is up or after `MOST` matches, but at least `least` matches
        are played. All matches that have begun are played to their end. Otherwise long matches
        would be underrepresented.

        Returns:
            The replays by the number of the match. The player has the first seat in matches with
            even numbers.
        """
        player, opponents = sides
        least = least or max(ROWS, 2 * len(opponents))
        recipe, started, numbers = Recipe.of(self.settings), time.monotonic(), dict[str, int]()
        failures: dict[Bout, str] = {}

        def bouts() -> Iterator[Bout]:
            for pair, opponent in enumerate(itertools.cycle(opponents)):
                is_over = 2 * pair >= MOST or time.monotonic() >= started + seconds
                if 2 * pair >= least and is_over:
                    return
                both = bouts_of(player, opponent, 2, seed + 2 * pair, errs=disturb > 0 or pace > 1)
                numbers.update((b.match_id(recipe), 2 * pair + i) for i, b in enumerate(both))
                yield from both

        played = dict[int, Replay]()
        for replay in play(
            self.settings, [one for entrant in (player, *opponents) for one in entrant.members],
            bouts(), seed=seed, greedy=False, failures=failures, pace=pace, disturb=disturb,
            rows=ROWS,
        ):  # fmt: skip
            played[numbers[replay.match_id]] = replay
            passed = time.monotonic() - started
            self.show(f"{player.name}: {len(played)} matches in {passed:.0f} s")
        say_failed([*failures.values()])
        if not played:
            why = next(iter(failures.values()))
            raise DataCorrupt(f"no match of {player.name} could be played to its end: {why}")
        return played


def _points(number: int, replay: Replay) -> float:
    return replay.outcome if number % 2 == 0 else 1.0 - replay.outcome

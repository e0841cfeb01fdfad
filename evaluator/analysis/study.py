"""Studies a player of a league: finds its opponents, plays them, and analyses the matches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from evaluator.analysis.analyse import analyse, watch
from league.agent.snapshot import load_snapshot, read_card
from league.agent.strategy import with_encoder
from league.console.output import say
from league.contest.matches import paired, play
from league.contest.members import Finder, Member
from league.errors import InvalidInput
from league.games.settings import GameSettings
from league.replay import Bout
from league.runs.blobs import SUFFIX

SNAPSHOTS = 3
"""By default, the agent meets this many other snapshots of the league, spread over all steps."""


@dataclass(frozen=True, kw_only=True)
class Study:
    """An agent and the opponents that it is to meet."""

    settings: GameSettings
    player: Member
    opponents: tuple[Member, ...]

    @classmethod
    def of(cls, finder: Finder, player: str, against: Sequence[str] = ()) -> Self:
        """Finds the agent and its opponents.

        Args:
            finder: finds members.
            player: a snapshot, a live player or a weights file.
            against: opponents, by default all bots and `SNAPSHOTS` snapshots of the league.

        Raises:
            InvalidInput: the player is a bot or a mixture.
            NotFound: there is no such member.
        """
        settings = finder.settings([player, *against], alone=True)
        spec, league = settings.spec(), finder.league
        (member,) = finder.find(spec, [player])
        names = list(against) or [bot.name for bot in spec.bots]
        if not against and (league.run_dir or league.address or not player.endswith(SUFFIX)):
            names += _spread([name for name in finder.snapshots() if name != member.name])
        found = {one.name: one for one in finder.find(spec, names) if one.name != member.name}
        if member.blobs is None:
            raise InvalidInput(f"{member.name} is a bot and has no latent: name a snapshot")
        frame_skip = read_card(member.blobs, member.digest).frame_skip
        others = [one for one in found.values() if against or _can_meet(one, frame_skip)]
        return cls(settings=settings, player=member, opponents=tuple(others))

    def run(self, *, matches: int, seed: int = 0, pictures: bool = False) -> dict[str, Any]:
        """Plays the matches and analyses them.

        Args:
            matches: number of matches against each opponent, with seats swapped.
            seed: seed of the first match and of sampled keys.
            pictures: as for `analyse`.

        Returns:
            The report of `analyse`.

        Raises:
            InvalidInput: the agent has no strategy encoder, or meets too few opponents.
        """
        player, opponents = self.player, self.opponents
        assert player.blobs is not None
        network, card = load_snapshot(player.blobs, player.digest)
        with_encoder(network, player.name)
        bouts = [
            bout
            for other in opponents
            for bout in paired(
                player.contender, other.contender, (player.seated, other.seated), matches, seed
            )
        ]
        bouts.sort(key=lambda bout: bout.seed)
        say(f"({len(bouts)} matches of {player.name} against {len(opponents)} opponents)")
        failures: dict[Bout, str] = {}
        replays = play(
            self.settings, [player, *opponents], bouts, seed=seed, greedy=False, failures=failures
        )
        watched = watch(replays, player.name, [one.name for one in opponents], card.frame_skip)
        if failures:
            why = next(iter(failures.values()))
            say(f"({len(failures)} matches could not be finished, the first as {why})")
        spec = self.settings.spec()
        return analyse(
            network, card, spec, watched, player=player.name, seed=seed, pictures=pictures
        )


def _spread(names: list[str]) -> list[str]:
    """Returns `SNAPSHOTS` of the names, evenly spread, including the first and the last."""
    last = len(names) - 1
    places = {round(place * last / (SNAPSHOTS - 1)) for place in range(SNAPSHOTS)}
    return [names[place] for place in sorted(places) if names]


def _can_meet(member: Member, frame_skip: int) -> bool:
    """Returns whether a member can play against the agent. Bots always can. A network can if its
    weights are on this machine and it has the agent's `frame_skip`.
    """
    blobs, digest = member.blobs, member.digest
    return blobs is None or (
        blobs.has(digest) and read_card(blobs, digest).frame_skip == frame_skip
    )

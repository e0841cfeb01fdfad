"""Finds the players that a command names: bots, members of a league, and weights files."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from league.contest.league import League
from league.errors import DataCorrupt, InvalidInput, InvalidName, NotFound, nearest
from league.evaluations import Who, members_of, mixture_of, text_of
from league.games.base import EXTERNAL, GameSpec
from league.games.settings import GameSettings
from league.ids import checked_digest, is_mixture
from league.players import Player, PlayerKind, newest_snapshot
from league.replay import Contender
from league.runs.blobs import MOST_BYTES, SUFFIX, BlobFolder
from league.runs.files import open_file
from league.runs.finding import DATABASE
from league.settings.base import resolve

if TYPE_CHECKING:
    from league.agent.contract import PlayingNetwork
    from league.agent.snapshot import SnapshotCard


@dataclass(frozen=True, kw_only=True)
class Member:
    """Describes a player for a seat: a bot, a network in memory, a snapshot or a rival.

    `bot` is a bot's index in the game's spec. `digest` identifies a snapshot's weights or a rival's
    bundle in the folder `blobs`.
    """

    name: str
    bot: int | None = None
    digest: str = ""
    blobs: BlobFolder | None = None
    network: PlayingNetwork | None = None
    is_rival: bool = False

    @property
    def seated(self) -> int:
        """Returns the member's value in `BatchedGame.bots_N2`."""
        return EXTERNAL if self.bot is None else self.bot

    @property
    def contender(self) -> Contender:
        return Contender(name=self.name, digest=self.digest)


@dataclass(frozen=True, kw_only=True)
class Entrant:
    """Describes a participant in matches: a member, or a mixture of members.

    The `weights` of the members sum to 1. Before each match of a mixture, one of its members is
    drawn.
    """

    name: str
    members: tuple[Member, ...]
    weights: tuple[float, ...]

    @property
    def shares(self) -> dict[tuple[int, Contender], float]:
        """The total weight of each distinct member."""
        shares: dict[tuple[int, Contender], float] = {}
        for member, weight in zip(self.members, self.weights, strict=True):
            key = member.seated, member.contender
            shares[key] = shares.get(key, 0.0) + weight
        return shares

    def draw(self, rng: np.random.Generator) -> Member:
        """Draws the member that plays a match."""
        return self.members[rng.choice(len(self.members), p=self.weights)]


@dataclass
class Finder:
    """Finds members by name. `game`, `blobs` and `assignments` are the values of the flags --game,
    --blobs and --set.
    """

    league: League
    game: str | None = None
    blobs: Path | None = None
    assignments: Sequence[str] = ()

    def settings(self, whos: Sequence[Who], *, alone: bool = False) -> GameSettings:
        """Returns the settings of the members' game. It is the game of their run, unless `--game`
        names another game.

        Args:
            whos: names or mixtures.
            alone: whether mixtures are forbidden.

        Raises:
            InvalidInput: a mixture is named, although `alone` is set.
            NotFound: there is no run, or the game has no such bot.
        """
        names = [name for who in whos for name in mixture_of(who)]
        if alone and (
            mixtures := [who for who in whos if who not in names or is_mixture(str(who))]
        ):
            raise InvalidInput(f"{mixtures[0]!r} is a mixture, and one player is wanted: name it")
        own = self._settings_of_run() if self.league.run_dir is not None else None
        if own is not None and self.game in (None, own.name):
            return own
        elsewhere = [name for name in names if is_elsewhere(name)]
        if own is None and elsewhere and not self.league.address:
            return self._in(elsewhere[0]).settings(())
        named = game_settings(self.game or "brawl", self.assignments)
        spec = named.spec()
        bots = [bot.name for bot in spec.all_bots]
        unknown = [name for name in names if name not in bots and not name.endswith(SUFFIX)]
        if own is None and unknown and not self.league.address:
            try:
                own = self._settings_of_run()
            except NotFound:
                if self.game:
                    raise _no_bot(unknown[0], spec) from None
                raise
        return own if own is not None and self.game in (None, own.name) else named

    def find(self, spec: GameSpec, names: Sequence[str]) -> list[Member]:
        """Returns a member for each name. The league is asked only for names that are neither bots
        nor files.

        Args:
            spec: the game.
            names: bots, snapshots, live players, rivals and weights files. Players of other runs
                are named with the run's folder, such as ``runs/bold/main``.

        Raises:
            NotFound: there is no such member.
            InvalidInput: a player has no weights.
        """
        members: dict[str, Member] = {}
        bots = {bot.name: index for index, bot in enumerate(spec.all_bots)}
        for name in names:
            if name in bots:
                members[name] = Member(name=name, bot=bots[name])
            elif name.endswith(SUFFIX):
                members[name] = from_file(Path(name))
            elif is_elsewhere(name):
                folder, _, own = name.rpartition("/")
                [member] = self._in(name).find(spec, [own])
                members[name] = replace(member, name=f"{folder}/{member.name}")
        rest = [name for name in names if name not in members]
        if rest:
            blobs = self._blob_folder()
            members |= {name: self._from_league(name, self.players, blobs, spec) for name in rest}
        return [members[name] for name in names]

    def entrants(self, spec: GameSpec, whos: Sequence[Who]) -> list[Entrant]:
        """Returns an entrant for each name or mixture. Raises the errors of `find`."""
        parts = [members_of(who, lambda: self.players, self._nash) for who in whos]
        names = list(dict.fromkeys(name for part in parts for name in part))
        members = dict(zip(names, self.find(spec, names), strict=True))
        entrants = []
        for who, part in zip(whos, parts, strict=True):
            shown: dict[str, float] = {}
            for name, share in mixture_of(who).items():
                known = members[name].name if name in members else name
                shown[known] = shown.get(known, 0.0) + share  # two names may mean one member
            own = tuple(members[name] for name in part)
            entrants.append(Entrant(name=text_of(shown), members=own, weights=tuple(part.values())))
        return entrants

    def snapshots(self) -> list[str]:
        """Returns the names of the league's snapshots, the oldest first. Raises `NotFound` if there
        is no snapshot.
        """
        frozen = [player for player in self.players if player.kind is PlayerKind.SNAPSHOT]
        if not frozen:
            raise NotFound("this run has no snapshot yet: wait for its first, or name a bot")
        return [one.name for one in sorted(frozen, key=lambda one: (one.step, one.name))]

    @cached_property
    def players(self) -> list[Player]:
        """The league's players, in order of registration."""
        with self.league.connect() as client:
            return client.players()

    def _in(self, name: str) -> Finder:
        """Returns a finder with the same flags that looks in another run, for a name such as
        ``runs/bold/main``.
        """
        path = Path(name)
        if (path / DATABASE).exists():
            raise InvalidInput(f"{name} is a run: name a player of it, such as {path / 'main'}")
        return replace(self, league=League(run_dir=path.parent), blobs=None)

    def _nash(self) -> dict[str, float]:
        """Returns the league's Nash mixture, or {} without clean matches."""
        from league.stats.structure.mixtures import nash_of  # scipy takes half a second to load

        with self.league.connect() as client:
            return nash_of(client.players(), client.payoff(), client.ratings())

    def _settings_of_run(self) -> GameSettings | None:
        file = self.league.folder() / "config.toml"
        if not file.exists():
            return None
        own = resolve(file=file, environment={}).of(GameSettings)
        if self.game not in (None, own.name) or not self.assignments:
            return own
        return resolve(None, file, self.assignments, environment={}).of(GameSettings)

    def _blob_folder(self) -> BlobFolder:
        if self.blobs is not None:
            return BlobFolder(self.blobs)
        if self.league.address:
            raise InvalidInput("--address sends no weights: add --blobs RUN/blobs")
        return BlobFolder(self.league.folder() / "blobs")

    def _from_league(
        self, name: str, players: list[Player], blobs: BlobFolder, spec: GameSpec
    ) -> Member:
        player = next((player for player in players if player.name == name), None)
        if player is None or player.kind is PlayerKind.BOT:
            raise self._no_member(name, players, spec)
        if player.kind is PlayerKind.LIVE:
            player = newest_snapshot(name, players)
        if not player.digest:
            raise InvalidInput(
                f"{player.name} ({player.kind.value}) has no weights to play with: name a snapshot"
            )
        is_rival = player.kind is PlayerKind.RIVAL
        return Member(name=player.name, digest=player.digest, blobs=blobs, is_rival=is_rival)

    def _no_member(self, name: str, players: list[Player], spec: GameSpec) -> NotFound:
        known = [bot.name for bot in spec.all_bots]
        known += [player.name for player in players if player.kind is not PlayerKind.BOT]
        near = nearest(name, known)
        if not near and self.game:
            return _no_bot(name, spec)
        place = self.league.address or self.league.run_dir
        hint = near or "bin/league players lists them"
        return NotFound(f"there is no member {name!r} in {place}, which plays {spec.name}: {hint}")


def is_elsewhere(name: str) -> bool:
    """Returns whether a name consists of a run's folder and a player of this run."""
    return "/" in name and not name.endswith(SUFFIX)


def game_settings(name: str, assignments: Sequence[str] = ()) -> GameSettings:
    """Returns the settings of a game, after applying the assignments of --set."""
    return resolve(assignments=[f"game.name={name}", *assignments]).of(GameSettings)


def check_plays(name: str, card: SnapshotCard, spec: GameSpec) -> None:
    """Checks that an agent was made for a game. `name` is for messages.

    Raises:
        InvalidInput: the agent's observations or actions differ from the game's.
        VersionMismatch: the game's rules differ.
    """
    from league.agent.snapshot import check_rules

    check_rules(name, card, spec)
    own, here = (
        (sizes.observation_size, sizes.action_size, sizes.action_kind)
        for sizes in (card.agent, spec)
    )
    is_other = (card.game, card.game_version) != (spec.name, spec.version)
    if own[1:] != here[1:] or not (own[0] == here[0] or (is_other and own[0] < here[0])):
        raise InvalidInput(
            f"{name} sees {own[0]} numbers and has {own[1]} actions, {spec.name} here has "
            f"{here[0]} and {here[1]}: it was trained with other options of the game, so name its "
            "run with --run-dir"
        )


def numbered(members: list[Member]) -> list[Member]:
    """Returns the members. If several members have the same name, all names get a number."""
    if len({member.name for member in members}) == len(members):
        return members
    return [replace(one, name=f"{one.name} ({number})") for number, one in enumerate(members, 1)]


def _no_bot(name: str, spec: GameSpec) -> NotFound:
    bots = ", ".join(bot.name for bot in spec.all_bots)
    return NotFound(f"{spec.name} has no bot {name!r}: it has {bots}")


def from_file(path: Path) -> Member:
    """Makes a member from a weights file.

    Raises:
        NotFound: there is no such file.
        DataCorrupt: the file holds no weights.
        InvalidName: the file was renamed. Its name must be the digest of its content.
    """
    if not path.is_file():
        raise NotFound(f"there is no weights file {path}: check the path")
    try:
        digest = checked_digest(path.stem)
    except InvalidName:
        with open_file(path, MOST_BYTES) as file:
            content = file.read()
        length = int.from_bytes(content[:8], "little")
        if not content[8 : 8 + length].rstrip().endswith(b"}"):  # the file's header, in JSON
            raise DataCorrupt(f"{path} is damaged, or no weights file: copy it again") from None
        right = hashlib.sha256(content).hexdigest()
        raise InvalidName(
            f"{path} was renamed, and weights are named by their sha256: rename it to "
            f"{right}{SUFFIX}"
        ) from None
    return Member(name=digest[:12], digest=digest, blobs=BlobFolder(path.parent))

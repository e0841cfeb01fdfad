"""Finds the entrants of a tournament: members of a league, bots, and other people's files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from league.agent.rival_bundles import (
    MODELS,
    bundles,
    is_link,
    is_trusted,
    packed,
    trust,
)
from league.agent.rival_worker import FILE
from league.agent.rivals import LIMITS, check
from league.console.output import say
from league.console.text import long_duration
from league.contest.members import Finder, Member
from league.contest.rivals import require_trust
from league.errors import InvalidInput, plain
from league.games.registry import family
from league.games.settings import GameSettings
from league.runs.blobs import BlobFolder

LEAST, MOST = 2, 256
MOST_NAME = 40
ENDINGS = (".py", *MODELS)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """An entrant. `kind` is file, rival, bot or weights. `source` is the path of the entrant's
    file, or, for members, the word that names the member on the command line.
    """

    member: Member
    kind: str
    source: str

    @property
    def name(self) -> str:
        return self.member.name


def find_entries(
    finder: Finder, words: Sequence[str], blobs: BlobFolder, *, trusted: bool
) -> tuple[GameSettings, list[Entry]]:
    """Returns the game and the entrants. No two entrants have the same name.

    Args:
        finder: finds members and the game. If no word names a member, no league is needed.
        words: names of members, files, and folders of files. A word means a file if it ends in .py,
            .zip or .onnx, contains a slash, or is the name of a folder here.
        blobs: where the rivals' bundles are stored.
        trusted: whether the user agrees to run the files. Otherwise a person at the terminal is
            asked, unless this user has agreed to the same files before.

    Raises:
        InvalidInput: there are too few or too many entrants, the user does not agree, or files
            can't play the game.
        NotFound: there is no such member.
    """
    files = {word: _files(Path(word)) for word in words if _is_file(word)}
    names = [word for word in words if word not in files]
    settings = finder.settings(names, alone=True)
    found = iter(finder.find(settings.spec(), names))
    entries = list[Entry]()
    asked = dict[str, str]()  # source by digest
    for word in words:
        for path in files.get(word, ()):
            digest = bundles(blobs).put(packed(path))
            asked[digest] = str(path)
            member = Member(name=_name(path), digest=digest, blobs=blobs, is_rival=True)
            entries.append(Entry(member=member, kind="file", source=str(path)))
        if word in files:
            continue
        member = next(found)
        kind = "bot" if member.bot is not None else "rival" if member.is_rival else "weights"
        if member.is_rival:
            assert member.blobs is not None
            digest = bundles(blobs).put(bundles(member.blobs).get(member.digest))
            asked[digest] = word
            member = replace(member, blobs=blobs)
        entries.append(Entry(member=member, kind=kind, source=word))
    if not LEAST <= len(entries) <= MOST:
        count = "1 entrant" if len(entries) == 1 else f"{len(entries)} entrants"
        raise InvalidInput(f"{count} can't play: name {LEAST} to {MOST}")
    if asked and family(settings.name) != "brawl":
        raise InvalidInput(f"{next(iter(asked.values()))} plays brawl only, not {settings.name}")
    new = {digest: source for digest, source in asked.items() if not is_trusted(digest)}
    for digest, source in new.items():
        if is_link(bundles(blobs).get(digest)):  # to play, its token would be sent to its address
            raise InvalidInput(
                f"{source} plays at an address that this user has not agreed to: add the player to "
                "a league with bin/league add HOST:PORT"
            )
    require_trust(list(new.values()), trust=trusted)
    spec = settings.spec()
    for digest, source in asked.items():
        trust(digest)
        try:
            seconds = check(bundles(blobs).get(digest))
            if seconds * spec.frames_per_second > 1.0:
                most = long_duration(spec.max_frames * min(seconds, LIMITS.decision_seconds))
                length = spec.max_frames / spec.frames_per_second
                say(
                    f"({source}: {1000 * seconds:.0f} ms a decision, so a match of {length:g} s "
                    f"takes up to {most})"
                )
        except InvalidInput as error:
            say(f"({source} will lose matches: {error})")
    return settings, _named_apart(entries)


def _is_file(word: str) -> bool:
    return word.endswith(ENDINGS) or (
        not word.endswith(".safetensors") and ("/" in word or Path(word).is_dir())
    )


def _files(path: Path) -> list[Path]:
    """Returns the path itself, or the agents in a folder of agents, sorted by name."""
    if not path.exists():
        raise InvalidInput(f"there is no file {path}: check the path")
    if not path.is_dir() or (path / FILE).exists():
        return [path]
    inside = [one for one in sorted(path.iterdir()) if not one.name.startswith((".", "_"))]
    agents = [one for one in inside if one.suffix in ENDINGS or (one / FILE).exists()]
    if not agents:
        raise InvalidInput(
            f"{path} has no agents: put .py, .zip and .onnx files there, or folders with {FILE}"
        )
    return agents


def _name(path: Path) -> str:
    """Returns the name of a file or folder, without characters that steer a terminal."""
    path = path.resolve()
    stem = path.name if path.is_dir() else path.parent.name if path.name == FILE else path.stem
    return plain(stem)[:MOST_NAME].strip() or "agent"


def _named_apart(entries: Sequence[Entry]) -> list[Entry]:
    """Adds a number to each name that has occurred before: a, a (2), a (3)."""
    apart, taken = list[Entry](), set[str]()
    for entry in entries:
        name, number = entry.name, 1
        while name in taken:
            number += 1
            name = f"{entry.name} ({number})"
        taken.add(name)
        apart.append(replace(entry, member=replace(entry.member, name=name)))
    return apart

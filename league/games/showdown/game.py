"""Runs the batched game over Showdown's battles.

Shape suffixes: N matches, R rows, 2 seats, K reward terms, S stats.
"""

from __future__ import annotations

import json
import sys
from importlib import metadata
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.errors import ConfigError
from league.games.base import CHOICE, GameSpec
from league.games.hosted import HostedGame, Pool, check_options, inherited
from league.games.showdown.install import installed, version

try:
    from league.games.showdown.kinds import BOTS, FORMATS, Kind
    from league.games.showdown.observation import FIELD_NUMBERS, id_kind, side_names, sizes
    from league.games.showdown.simulator import digest, teams_of
    from league.games.showdown.worker import seen_type
except ImportError as error:
    raise ConfigError(
        "the game 'showdown' needs poke-env: run bin/league showdown install"
    ) from error

MAX_FRAMES = 300
TERMS = ("faint", "damage", "win")
STATS = ("turns", "fainted", "switches", "refused", "team")
PRESETS = {"dense": {"faint": 0.5, "damage": 0.25, "win": 1.0}, "sparse": {"win": 1.0}}
"""Weights by preset. The unit of the terms `faint` and `damage` is a whole team."""


class ShowdownGame(HostedGame):
    """Plays N battles of a format.

    The observation of a seat has two parts. The own part (about the seat itself) shows whether the
    seat has to choose (1 number), its legal choices, the field and its team. The rest shows the
    revealed part of the opponent's team.

    Args:
        num_matches: battles that step together.
        argument: the format, one of `FORMATS`.
        max_frames: rounds of choices after which the player with more Pokémon left wins. None means
            300.
        teams: folder of PokePaste texts, for a format in which players bring their own teams. The
            match's seed draws a team for each seat.
        step_seconds: longest time that a process may take for a round of all its battles.
        workers: number of processes, each with a simulator. 0 derives it from the numbers of
            matches and processor cores.

    Raises:
        ConfigError: an unknown format, no simulator is installed, or a team breaks the rules.
    """

    def __init__(
        self,
        num_matches: int,
        *,
        argument: str = "",
        max_frames: int | None = None,
        teams: str = "",
        step_seconds: float = 60.0,
        workers: int = 0,
    ) -> None:
        check_options(step_seconds, workers)
        if argument not in FORMATS:
            raise ConfigError(
                f"game 'showdown' has no format {argument!r}: name one as showdown:FORMAT, of "
                f"{', '.join(FORMATS)}"
            )
        battle_format = argument
        kind, folder, pool_of_teams = FORMATS[battle_format], str(installed()), tuple[str, ...]()
        if kind.brings_team:
            if not teams:
                raise ConfigError(
                    f"players bring their teams to {battle_format}: name a folder of PokePaste "
                    "texts by --set game.options.teams=FOLDER"
                )
            pool_of_teams = teams_of(teams, battle_format, folder)
        start = {
            "folder": folder,
            "battle_format": battle_format,
            "teams": pool_of_teams,
            "step_seconds": step_seconds,
        }
        pool = Pool(
            [sys.executable, "-P", "-m", "league.games.showdown.worker", json.dumps(start)],
            f"battles of {battle_format}",
            matches=num_matches,
            workers=workers,
            step_seconds=step_seconds,
            env=inherited({"PYTHONHASHSEED": "0"}),
            stdout=2,  # libraries may print, so keep them off our standard output
        )
        spec = _spec(battle_format, kind, digest(pool_of_teams) if teams else "", max_frames)
        super().__init__(spec, num_matches, pool, seen_type(kind))
        self._kind = kind
        self._switches_A = np.array(["switch" in name for name in spec.action_names])
        self._seen_N["legal"][:, :, 0] = True
        self._seen_N["hp"] = self._seen_N["alive"] = 1.0
        self._nothing = self._seen_N[0].copy()
        self._before_N = self._seen_N.copy()
        self.show(np.arange(num_matches))
        self.final_observations_N2O[:] = self.observations_N2O

    def request(self, verb: str, rows: list[int]) -> tuple[Any, ...]:
        """Returns a worker request's arguments after `rows`, including the indices of the bots that
        the worker plays.
        """
        return *super().request(verb, rows), self.bots_N2[rows].tolist()

    def show(self, rows: NDArray[np.intp]) -> None:
        """Writes the observations and legal choices of `rows`."""
        assert self.legal_N2A is not None
        self.legal_N2A[rows] = self._seen_N["legal"][rows]
        self.observations_N2O[rows] = self._views(rows)

    def _views(self, rows: NDArray[np.intp]) -> NDArray[np.float32]:
        seen_R = self._seen_N[rows]
        legal = self._kind.shown(seen_R["legal"])
        return np.concatenate(
            [seen_R["acting"][:, :, None], legal, seen_R["views"]], 2, dtype=np.float32
        )

    def step(self, actions_N2A: NDArray[np.uint8], frames: int = 1) -> None:
        """Plays a round of choices."""
        self.refuse_illegal(self.checked_actions(actions_N2A, frames))
        super().step(actions_N2A, frames)

    def play_frame(self, actions_N2A: NDArray[np.uint8]) -> None:
        """Plays a round of choices. The workers report the bots' choices."""
        self._before_N = self._seen_N.copy()
        super().play_frame(actions_N2A)

    def count(self, rows: NDArray[np.intp]) -> None:
        """Adds a round's reward terms and stats, from the teams before and after the round."""
        then, now = self._before_N[rows], self._seen_N[rows]
        chosen_R2 = now["choices"]
        self._actions_N2A[rows] = np.arange(self.spec.action_size) == chosen_R2[:, :, None]
        for term, name in enumerate(("alive", "hp")):
            lost_R2 = then[name] - now[name]
            self.reward_terms_N2K[rows, :, term] += lost_R2[:, ::-1] - lost_R2
        acted_R2 = then["acting"]
        self.stats_N2S[rows, :, 0] = now["turn"][:, None]
        self.stats_N2S[rows, :, 1] = 1.0 - now["alive"]
        self.stats_N2S[rows, :, 2] += acted_R2 & self._switches_A[chosen_R2]
        self.stats_N2S[rows, :, 3] += now["refused"]
        self.stats_N2S[rows, :, 4] = now["team"]

    def end(self, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """Writes the final observations. The simulator or the time limit has decided the result."""
        self.final_observations_N2O[rows] = self._views(rows)
        return self._seen_N["lead"][rows].astype(np.float64)

    def frame(self, match: int) -> dict[str, Any]:
        """Returns the battle so far, in the form of Showdown's replays."""
        return self._frame("log", match, int(self.frames_N[match]))

    def final_frame(self, match: int) -> dict[str, Any]:
        """Returns the previous battle of a row, from start to end."""
        return {**self._frame("last", match, int(self.final_frames_N[match])), "ended": True}

    def _frame(self, verb: str, match: int, frame: int) -> dict[str, Any]:
        text = self._broken.get(match, "")
        if not text and self.host.is_started:
            text = self.ask(verb, match)
        return {
            "game": self.spec.name,
            "frame": frame,
            "max_frames": self.spec.max_frames,
            "text": text,
        }


def _spec(battle_format: str, kind: Kind[Any], teams: str, max_frames: int | None) -> GameSpec:
    side = side_names(kind.active)
    own = ("to choose", *(f"may {name}" for name in kind.shown_names), *FIELD_NUMBERS, *side)
    vocabulary = sizes()
    names = (*own, *(f"opponent's {name}" for name in side))
    ids = {
        id_name: tuple(
            index
            for index, name in enumerate(names)
            if id_kind(name.removeprefix("opponent's ")) == id_name
        )
        for id_name in vocabulary
    }
    return GameSpec(
        name=f"showdown:{battle_format}",
        version=f"{version()} poke-env {metadata.version('poke-env')} {teams}".strip(),
        frames_per_second=1,
        observation_size=len(names),
        own_size=len(own),
        action_size=len(kind.action_names),
        action_names=kind.action_names,
        reward_terms=TERMS,
        stats=STATS,
        bots=BOTS,
        max_frames=MAX_FRAMES if max_frames is None else max_frames,
        action_kind=CHOICE,
        observation_names=names,
        reward_presets=PRESETS,
        ids=tuple((vocabulary[id_name], *places) for id_name, places in ids.items()),
    )

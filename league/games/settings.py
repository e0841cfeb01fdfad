"""Holds the settings of a run's game."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import Field, field_validator, model_validator

from league.errors import ConfigError, InvalidInput
from league.games.base import CHOICE, BatchedGame, GameSpec
from league.games.registry import game_spec, is_safe_in_files, make_batched, reward_weights
from league.settings.base import Settings

if TYPE_CHECKING:  # this loads gRPC
    from league.security.credentials import Credentials

Option = bool | int | float | str
LOCAL = "local"
"""Means a process on this machine in a list of workers."""
MOST_WORKERS = 1024


class GameSettings(Settings):
    """Selects the game, its conditions and its reward."""

    name: str = "brawl"
    """Name of the game: brawl, kuhn, leduc, matrix:NAME, pettingzoo:MODULE, openspiel:NAME,
    ai2:FOLDER (a checkout of the original), grpc:HOST:PORT (a server in any language),
    python:MODULE:FACTORY, or one that a package adds under the entry point group kumite.games.
    """
    match_seconds: float = Field(default=0.0, ge=0, le=3600)
    """Time limit of a match, in seconds of game time. 0 means the game's own limit, which in brawl
    is 90, as in the original.
    """
    frame_skip: int = Field(default=1, ge=1, le=30)
    """Number of frames that a player's decision lasts. With 1, a player of brawl decides 30 times a
    second, as a person can. In games of choices (cards, boards) it must be 1.
    """
    reward: str = "dense"
    """Reward preset: a set of weights for the game's reward terms. The preset dense rewards more
    than the outcome alone.
    """
    reward_weights: dict[str, float] = Field(default_factory=dict)
    """Weights by reward term, which replace the preset's weights of these terms."""
    options: dict[str, Option] = Field(default_factory=dict)
    """Options of the game itself, by name (brawl has `stage`, matrix has `rounds`). Any other
    option keeps the game's default.
    """

    workers: int | tuple[str, ...] = 0
    """Processes that play the matches in which a learner trains: their number on this machine, or
    the addresses HOST:PORT of workers on other machines (`bin/league serve-game`). In such a list,
    each word local means a process on this machine. With 0 the learner plays the matches itself,
    which is best for fast games. PettingZoo, ai2 and Showdown have processes of their own
    (`game.options.workers`), so they need no others on this machine.
    """

    @model_validator(mode="after")
    def _fits_the_game(self) -> GameSettings:
        try:
            spec = self.spec()
        except ConfigError as error:
            raise ValueError(str(error)) from None
        try:
            reward_weights(spec, self.reward, self.reward_weights)
        except ConfigError as error:
            # A preset for the fighting game was combined with another game.
            is_fighters = (
                self.reward in game_spec("brawl").reward_presets.keys() - spec.reward_presets
            )
            hint = " (--preset board has settings for games of cards and boards)"
            raise ValueError(f"{error}{hint if is_fighters else ''}") from None
        if spec.action_kind == CHOICE and self.frame_skip != 1:
            raise ValueError(
                f"frame_skip is {self.frame_skip}: in {self.name} a frame is one choice, set 1"
            )
        return self

    def spec(self) -> GameSpec:
        """Returns the game's spec."""
        options: dict[str, Any] = {**self.options}
        return game_spec(self.name, max_frames=self.max_frames, **options)

    @field_validator("workers", mode="before")
    @classmethod
    def _in_a_list(cls, workers: Any) -> Any:
        return (workers,) if isinstance(workers, str) else workers

    @field_validator("workers")
    @classmethod
    def _are_workers(cls, workers: int | tuple[str, ...]) -> int | tuple[str, ...]:
        if isinstance(workers, int):
            if not 0 <= workers <= MOST_WORKERS:
                raise ValueError(f"take 0 to {MOST_WORKERS} workers")
            return workers
        for address in workers:
            host, _, port = address.rpartition(":")
            if address != LOCAL and (not host or "/" in host or not port.isdigit()):
                raise ValueError(f"{address!r} is neither an address HOST:PORT nor {LOCAL}")
        return workers

    def make(
        self,
        num_matches: int,
        *,
        training: bool = False,
        credentials: Credentials | None = None,
    ) -> BatchedGame:
        """Makes `num_matches` matches of the game.

        Args:
            num_matches: the number of matches.
            training: whether a learner trains on these matches. The game's `training_options` and
                its workers apply only then.
            credentials: what the learner shows to workers on other machines. None means its
                environment's token and certificates.
        """
        options: dict[str, Any] = {**self.options} if training else self.clean_options
        if training and self.workers:
            from league.games.workers.game import make_spread
            from league.security.credentials import of_run

            named = (LOCAL,) * self.workers if isinstance(self.workers, int) else self.workers
            return make_spread(
                self.name,
                num_matches,
                workers=[None if address == LOCAL else address for address in named],
                credentials=credentials or of_run(),
                max_frames=self.max_frames,
                options=options,
            )
        return make_batched(self.name, num_matches, max_frames=self.max_frames, **options)

    @property
    def clean_options(self) -> dict[str, Any]:
        """The game's options for matches in which no learner trains."""
        left_out = self.spec().training_options
        return {name: value for name, value in self.options.items() if name not in left_out}

    @property
    def max_frames(self) -> int | None:
        """The time limit in frames. None means the game's own limit."""
        if not self.match_seconds:
            return None
        options: dict[str, Any] = {**self.options}
        per_second = game_spec(self.name, **options).frames_per_second
        return max(1, round(self.match_seconds * per_second))


OwnGame = Callable[[], GameSettings | None]
"""Returns the caller's own game: the game of its run's settings or of its command's flags."""


def check_game_of_file(
    name: str, options: Mapping[str, Option], own_game: OwnGame = lambda: None
) -> None:
    """Refuses a game that a file names, unless the game is safe or is the caller's own game.

    A game's name decides which code runs, so a file from an unknown author could run any code.

    Args:
        name: the game's name in the file.
        options: the game's options in the file.
        own_game: returns the caller's own game. It is called only if the file's game is not safe.

    Raises:
        InvalidInput: the game is neither safe (`is_safe_in_files`) nor the caller's own game.
    """
    if is_safe_in_files(name, options):
        return
    settings = own_game()
    if settings is None or (settings.name, settings.options) != (name, dict(options)):
        shown = f" with the options {dict(options)}" if options else ""
        raise InvalidInput(
            f"the game is {name[:200]!r}{shown[:200]}, and a file alone may not choose what runs "
            "here: if you trust it, name a run of that game with --run-dir, or the game with "
            "--game and --set game.options.NAME=VALUE"
        )

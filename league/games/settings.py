"""Settings of the game that a run is played in."""

from __future__ import annotations

from pydantic import Field, model_validator

from league.config import Settings
from league.errors import ConfigError
from league.games.brawl.rewards import reward_weights
from league.games.brawl.rules import FRAMES_PER_SECOND, MATCH_SECONDS
from league.games.brawl.stage import stage
from league.games.registry import game_names


class GameSettings(Settings):
    """Which game, under which conditions, for which reward."""

    name: str = "brawl"
    """Name of the game: built in, or added by a package under the entry point group kumite.games."""
    stage: str = "warehouse"
    """Name of the stage; the warehouse is the one that every published figure refers to."""
    match_seconds: float = Field(default=MATCH_SECONDS, gt=0, le=3600)
    """Time limit of a match in seconds of the game; 90 is the original's."""
    frame_skip: int = Field(default=1, ge=1, le=30)
    """Frames that one decision of a player lasts; 1 decides 30 times a second, as a person may."""
    reward: str = "dense"
    """Reward preset, a set of weights for the game's reward terms; dense teaches more than wins alone."""
    reward_weights: dict[str, float] = Field(default_factory=dict)
    """Weights that replace single ones of the preset, by reward term; empty leaves the preset as it is."""

    @model_validator(mode="after")
    def _known_names(self) -> GameSettings:
        if self.name not in game_names():
            raise ValueError(f"game {self.name!r} is none of {', '.join(game_names())}")
        if self.name == "brawl":
            try:
                stage(self.stage)
                reward_weights(self.reward, self.reward_weights)
            except ConfigError as error:
                raise ValueError(str(error)) from None
        return self

    @property
    def max_frames(self) -> int:
        """The time limit in frames."""
        return max(1, round(self.match_seconds * FRAMES_PER_SECOND))

"""The learner's settings: `[learner]`, `[regularisation]` and `[curriculum]`.

The defaults suit the large agent on a GPU. With these defaults, the learner plays the opponent mix
`league` from the first step.
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from league.errors import ConfigError
from league.settings.base import Settings
from league.stages import NEXT


class LearnerSettings(Settings):
    """Configures PPO, its rollouts, and when snapshots are saved.

    A step is a decision of the learner in a match.
    """

    steps: int = Field(10_000_000, ge=1)
    """Steps to train for, counted over all matches."""
    matches: int = Field(64, ge=1)
    """Matches played at once, in one batch."""
    n_steps: int = Field(512, ge=1)
    """Steps per match in a rollout; a rollout has matches x n_steps steps."""
    batch_size: int = Field(4096, ge=1)
    """Steps in a minibatch, a multiple of n_steps, because sequences are not split."""
    n_epochs: int = Field(10, ge=1)
    """Passes over each rollout."""
    gradient_parts: int = Field(1, ge=1, le=4096)
    """Parts into which each minibatch is split to accumulate its gradient. More parts need less
    memory and make the same optimizer step.
    """
    precision: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """Precision of the matrix products in an update. auto: bfloat16 on a GPU that has it, float16
    on other GPUs, and float32 on a CPU.
    """
    learning_rate: float = Field(2.5e-4, gt=0)
    """Adam's learning rate at the start."""
    learning_rate_final: float | None = Field(None, gt=0)
    """Learning rate at the last step, reached linearly; none keeps it constant."""
    desired_kl: float | None = Field(None, gt=0)
    """KL divergence to aim for in each update. The learning rate is adapted to reach it, but never
    exceeds the scheduled rate. none: the learning rate follows the schedule.
    """
    gamma: float = Field(0.99, gt=0, le=1)
    """Discount per step."""
    clip_range: float = Field(0.2, gt=0)
    """PPO's clip of the probability ratio."""
    ent_coef: float = Field(0.01, ge=0)
    """Weight of the entropy bonus at the start."""
    ent_coef_final: float | None = Field(None, ge=0)
    """Weight of the entropy bonus at the last step, reached linearly; none keeps it constant."""
    vf_coef: float = Field(0.5, gt=0)
    """Weight of the critic's loss. A game that pays only at the end of long matches needs a smaller
    weight, because its scaled returns are large and the critic's gradient would outweigh the
    actor's.
    """
    forecast_coef: float = Field(0.0, ge=0)
    """Weight of the loss of the head that predicts the opponent's next action from the strategy
    latent; 0: the agent has no such head.
    """
    seed: int = Field(0, ge=0)
    """Seed of weights, sampled actions and minibatches."""
    threads: int = Field(1, ge=1)
    """OpenMP threads of this process. Two busy threads on two cores are slower than one thread."""
    snapshot_interval: int = Field(50_000, ge=1)
    """Steps between frozen snapshots. If the curriculum has several stages, the interval is doubled
    in stages without `until_opponent`. With `matchmaker.roles = "alphastar-pseudocode"`, a main's
    snapshot may come up to one interval later.
    """
    wandb: Literal["off", "offline", "online"] = "off"
    """Whether to use Weights & Biases. offline: writes into the run folder, for `wandb sync`."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        sequences = self.batch_size // self.n_steps
        if self.batch_size % self.n_steps:
            raise ValueError(
                f"batch_size must be a multiple of n_steps ({self.n_steps}): sequences stay whole"
            )
        if self.gradient_parts > sequences:
            raise ValueError(
                f"gradient_parts {self.gradient_parts} is more than the {sequences} sequences of "
                "a minibatch"
            )
        if self.batch_size > self.matches * self.n_steps:
            raise ValueError(
                f"batch_size is more than a rollout of {self.matches} x {self.n_steps} steps"
            )
        return self

    def is_divisible(self, ranks: int) -> bool:
        """Returns whether matches and minibatches can be divided among this number of ranks
        (`share`).
        """
        return not self.matches % ranks and not (self.batch_size // self.n_steps) % ranks

    def cpu_ranks(self) -> int:
        """Returns the number of processes (ranks) to use on a CPU that has a free core for each.

        With fewer than 32 matches per rank, batches are so small that a second core does not help.
        """
        return 2 if self.matches >= 64 else 1

    def share(self, ranks: int) -> LearnerSettings:
        """Returns the settings of a single rank, with its share of the matches and of each
        minibatch.

        All ranks together have as many matches, and minibatches of the same size, as a learner
        without ranks. So they also make as many optimizer steps.

        Raises:
            ConfigError: the matches or the minibatches can't be divided among the ranks.
        """
        sequences = self.batch_size // self.n_steps
        if not self.is_divisible(ranks):
            problem = f"learner.matches is {self.matches}"
            if not self.matches % ranks:
                problem = f"a minibatch has {sequences} sequences (batch_size / n_steps)"
            raise ConfigError(f"{problem}, which can't be divided among {ranks} ranks: change one")
        return self.model_copy(
            update={"matches": self.matches // ranks, "batch_size": self.batch_size // ranks}
        )

    def learning_rate_at(self, remaining: float) -> float:
        """Returns the learning rate when the share `remaining` of the steps is left."""
        return _linear(self.learning_rate, self.learning_rate_final, remaining)

    def ent_coef_at(self, remaining: float) -> float:
        """Returns the entropy weight when the share `remaining` of the steps is left."""
        return _linear(self.ent_coef, self.ent_coef_final, remaining)


def _linear(start: float, final: float | None, remaining: float) -> float:
    return start if final is None else final + (start - final) * max(0.0, remaining)


class RegularisationSettings(Settings):
    """Configures RNaD (regularised Nash dynamics), which keeps the policy near frozen copies of
    itself, the references.

    Here an update is one optimizer step, as in the metric `learning/updates`.
    """

    alpha: float = Field(default=0.01, ge=0)
    """Weight of the KL divergence from the closest reference; 0 switches regularisation off."""
    form: Literal["loss", "reward"] = "loss"
    """loss: alpha times the KL divergence is added to the loss. reward: alpha log(π/π_ref) is
    subtracted from each reward, which is meant for self-play.
    """
    reference_interval: int = Field(default=1_000, ge=0)
    """Updates between renewals of the newest reference. 0 keeps the first reference for ever, so
    that a learner that starts from a clone stays near the clone.
    """
    portfolio_size: int = Field(default=5, ge=1, le=16)
    """Largest number of references, including the newest. In each state, only the closest reference
    counts.
    """
    pruning: Literal["recent", "best", "diverse"] = "diverse"
    """Which reference leaves a full portfolio. recent: the oldest. best: the lowest rated.
    diverse: the most redundant.
    """


class StageSettings(Settings):
    """Describes a stage of the curriculum."""

    name: str = Field(min_length=1)
    """Name shown and logged."""
    mix: str = Field(min_length=1)
    """Opponent mix to play, from [matchmaker.mixes]."""
    reward: str = ""
    """Reward preset during the stage; empty: the preset of [game]."""
    until_opponent: str = ""
    """Opponent that the learner must beat to end the stage; empty: the stage lasts until its time
    limit, the end of the run, or `bin/league stage next`.
    """
    until_win_rate: float = Field(default=1.0, ge=0, le=1)
    """Win rate that ends the stage. The learner's current win rate is estimated from its training
    matches and its snapshots' clean matches. A draw does not count as a win.
    """
    min_matches: int = Field(default=100, ge=1)
    """Training matches count as evidence once the learner has played this many against the
    opponent, because the first matches to end are short and mostly wins. One and a half times
    `learner.matches` is enough.
    """
    max_steps: int | None = Field(default=None, ge=1)
    """Steps after which the stage ends even without success. none: no limit."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.name == NEXT:
            raise ValueError(f"no stage can be called {NEXT!r}, which means the one after: rename")
        if self.until_opponent and self.until_win_rate == 1.0:
            raise ValueError("no estimate reaches until_win_rate = 1: give a lower one")
        return self


class CurriculumSettings(Settings):
    """Lists the stages in order. The default plays the mix `league` from the first step."""

    stages: tuple[StageSettings, ...] = (StageSettings(name="league", mix="league"),)
    """The stages, each an opponent mix, a rule that ends it and a time-out."""

    @model_validator(mode="after")
    def _has_stages(self) -> Self:
        if not self.stages:
            raise ValueError("at least one stage is needed")
        names = [stage.name for stage in self.stages]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"two stages are called {twice[0]!r}: give each another name")
        return self

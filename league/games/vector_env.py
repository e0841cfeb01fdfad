"""Provides many matches of the built-in game as a Gymnasium vector environment.

`gymnasium.make_vec("league/Brawl-v0", num_envs=256)` makes the environment. All matches step
together in a batched game, without a Python loop. Shape suffixes: N environments, 2 seats, O
observation width, A keys, K reward terms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from league.errors import ConfigError, InvalidInput
from league.games.gym_env import GREATEST_SEED, Matches, check_seat

Opponents = str | Sequence[str] | Callable[[NDArray[np.float32]], Any]
"""A bot's name, a list with a bot's name for each environment, or a function from the opponents'
observations [N, O] to their keys [N, A].
"""


class BrawlVectorEnv(VectorEnv[NDArray[np.float32], NDArray[np.int8], NDArray[Any]]):
    """Plays matches as `BrawlEnv` does, without pictures.

    When a match ends, the next match begins in the same step (`AutoresetMode.SAME_STEP`). The
    returned observation is the new match's first observation. `infos["final_obs"]` has the old
    match's last observation, and `infos["final_info"]["outcome"]` is 1, 0.5 or 0. With seed s,
    environment n begins like `BrawlEnv` with seed s + n. A match depends on its seed, opponent,
    actions and options, but not on the number of environments.

    Args:
        num_envs: N, the number of environments.
        opponent: see `Opponents`.
        seat: 0 or 1.
        render_mode: None. A batch of matches is not drawn.
        options: options of `Matches`.

    Raises:
        ConfigError: a wrong option.
    """

    def __init__(
        self,
        num_envs: int = 1,
        opponent: Opponents = "based",
        *,
        seat: int = 0,
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        check_seat(seat)
        if render_mode is not None:
            raise ConfigError(
                f"a batch of matches is not drawn (render_mode {render_mode!r}): leave render_mode "
                "out, or draw one match made by gymnasium.make"
            )
        matches = Matches(num_envs, **options)
        names = (
            [opponent] * num_envs
            if isinstance(opponent, str) or callable(opponent)
            else list(opponent)
        )
        if len(names) != num_envs:
            raise ConfigError(
                f"{len(names)} opponents don't fit {num_envs} environments: give one for each"
            )
        matches.game.bots_N2[:, 1 - seat] = [matches.bot_index(name) for name in names]
        self.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}
        self.num_envs = num_envs
        self._seat, self._matches, self._game = seat, matches, matches.game
        self._opponent = opponent if callable(opponent) else None
        self.single_observation_space = matches.observation_space
        self.single_action_space = matches.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begins new matches.

        Args:
            seed: a seed or a list of seeds, as in Gymnasium's vector environments.
            options: `reset_mask`, bool[N], selects the environments in which to begin a match.
                Without a mask, a match begins in every environment.

        Returns:
            The observations [N, O] and an empty info.

        Raises:
            InvalidInput: a wrong mask or number of seeds.
        """
        where_N = (options or {}).get("reset_mask")
        is_mask = isinstance(where_N, np.ndarray) and where_N.dtype == np.bool_
        if where_N is not None and not (is_mask and where_N.shape == (self.num_envs,)):
            raise InvalidInput(f"reset_mask must be a bool array of shape ({self.num_envs},)")
        self._matches.reset(self._match_seeds(seed), where_N)
        return self._views(self._seat), {}

    def _match_seeds(self, seed: int | Sequence[int | None] | None) -> NDArray[np.uint64]:
        """Draws the seed of each environment's first match as `BrawlEnv` does."""
        if isinstance(seed, (int, np.integer)):
            seed = [int(seed) + n for n in range(self.num_envs)]
            self._np_random, self._np_random_seed = seeding.np_random(seed[0])
        seeds_N = self.np_random.integers(GREATEST_SEED, size=self.num_envs).astype(np.uint64)
        if seed is None:
            return seeds_N
        if len(seed) != self.num_envs:
            raise InvalidInput(
                f"{len(seed)} seeds don't fit {self.num_envs} environments: give one for each"
            )
        for n, match_seed in enumerate(seed):
            if match_seed is not None:
                seeds_N[n] = seeding.np_random(int(match_seed))[0].integers(GREATEST_SEED)
        return seeds_N

    def step(
        self, actions: NDArray[np.int8]
    ) -> tuple[
        NDArray[np.float32],
        NDArray[np.float64],
        NDArray[np.bool_],
        NDArray[np.bool_],
        dict[str, Any],
    ]:
        """Holds each environment's keys, [N, A], for `frame_skip` frames.

        Returns:
            Observations [N, O], rewards, terminations and truncations [N], and infos.
        """
        matches, game, seat = self._matches, self._game, self._seat
        matches.press(seat, actions)
        if self._opponent is not None:
            matches.press(1 - seat, self._opponent(self._views(1 - seat)))
        weighted_NK = matches.step()[:, seat]
        ended_N = game.ended_N.copy()
        terms = matches.spec.reward_terms
        infos: dict[str, Any] = {"reward_terms": dict(zip(terms, weighted_NK.T, strict=True))}
        if ended_N.any():
            infos |= self._finals(ended_N, infos["reward_terms"])
        rewards_N = weighted_NK.sum(axis=1).astype(np.float64)
        return self._views(seat), rewards_N, ended_N, np.zeros_like(ended_N), infos

    def _finals(
        self, ended_N: NDArray[np.bool_], terms: Mapping[str, NDArray[np.float32]]
    ) -> dict[str, Any]:
        """Returns the last infos of ended matches, as Gymnasium's own vector environments do."""
        game, outcomes_N = self._game, np.zeros(self.num_envs)
        won_N = game.outcomes_N if self._seat == 0 else 1.0 - game.outcomes_N
        outcomes_N[ended_N] = won_N[ended_N]
        views_N = np.full(self.num_envs, None, dtype=object)
        for n in np.flatnonzero(ended_N):
            views_N[n] = game.final_observations_N2O[n, self._seat].copy()
        return {
            "final_obs": views_N,
            "_final_obs": ended_N.copy(),
            "final_info": {
                "outcome": outcomes_N,
                "_outcome": ended_N.copy(),
                "reward_terms": terms,
                "_reward_terms": ended_N.copy(),
            },
            "_final_info": ended_N.copy(),
        }

    def _views(self, seat: int) -> NDArray[np.float32]:
        return self._game.observations_N2O[:, seat].copy()

    def close_extras(self, **kwargs: Any) -> None:
        """Closes the game."""
        self._game.close()

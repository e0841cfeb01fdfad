"""The doctor on run folders that a real training wrote, ill from its first step."""

from __future__ import annotations

import numpy as np
import pytest
import sick
import sick_agents
import sick_environments
import sick_games
from trained_runs import causes, train

FAST = ("learner.learning_rate=0.3", "learner.learning_rate_final=0.3", "learner.desired_kl=none")
ILL = [
    ("6", sick.weights(), {}),
    ("9", ["game.reward_weights.toward_opponent=5000"], {}),
    ("15", [], {"network": sick_agents.ForgetfulUnroll}),
    ("16", FAST, {}),
    ("16", (*FAST, "learner.seed=1"), {}),
    ("18", ["agent.key_bias=-10"], {}),
    ("20", ["learner.clip_range=1e-7"], {}),
    ("B", [], {"environment": sick_environments.Clipping}),
]


@pytest.mark.parametrize(
    ("key", "flags", "parts"),
    [
        pytest.param(
            key,
            flags,
            parts,
            id="-".join([key, *flags[3:], *(part.__name__ for part in parts.values())]),
            marks=[pytest.mark.slow] if key in ("9", "18", "20") else [],
        )
        for key, flags, parts in ILL
    ],
)
def test_what_was_trained_ill_shows_in_its_files(tmp_path, key, flags, parts):
    found = causes(train(tmp_path, *flags, **parts))
    assert next(iter(found)) == key, found
    assert found[key][0] == "failure"
    assert [one for one, (verdict, _) in found.items() if verdict == "failure"] == [key]


@pytest.mark.slow
def test_a_scale_that_never_settles_has_drifted(tmp_path):
    sick_games.Inflation.factor = 1.0
    found = causes(
        train(tmp_path, game=lambda matches: sick_games.Inflation(matches, max_frames=90))
    )
    assert found["A"][0] == "failure"


class HalfAWin(sick_games.Watched):
    """The game itself cuts what a win pays."""

    def spoil(self):
        place = self.spec.reward_terms.index("win")
        self.reward_terms_N2K[..., place] = np.clip(self.reward_terms_N2K[..., place], -0.5, 0.5)


def test_a_win_that_the_game_itself_cuts_is_named(tmp_path):
    found = causes(train(tmp_path, game=lambda matches: HalfAWin(matches, max_frames=90)))
    assert next(iter(found)) == "B"

"""`bin/league serve-game` plays matches for learners that show the league's token."""

from __future__ import annotations

import signal
import sys
from contextlib import closing

import numpy as np
import pytest
from game_servers import started

from league.errors import Unavailable
from league.games.workers.game import WorkerGame, make_spread
from league.security.credentials import Credentials

COMMAND = (sys.executable, "-m", "league", "serve-game", "--game", "leduc", "--port", "PORT")
TOKEN = "a-token-of-the-league"


def spread(port: int, token: str) -> WorkerGame:
    return make_spread(
        "leduc",
        3,
        workers=(f"127.0.0.1:{port}",),
        credentials=Credentials(token=token),
        max_frames=None,
        options={},
    )


@pytest.mark.long
def test_a_served_game_is_played_by_those_with_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUMITE_TOKEN", TOKEN)
    with started([*COMMAND, "--set", "security.tokens=true"]) as (process, port):
        with closing(spread(port, TOKEN)) as game:
            game.reset(np.arange(3, dtype=np.uint64))
            game.step(game.idle_actions())
            assert not game.failures
            assert game.frames_N.tolist() == [1, 1, 1]
        with closing(spread(port, "another")) as game:
            game.host.wait_seconds = 2.0
            with pytest.raises(Unavailable):
                game.reset(np.arange(3, dtype=np.uint64))
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0

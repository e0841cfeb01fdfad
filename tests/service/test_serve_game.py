"""`bin/league serve-game` plays matches for learners that show the league's token."""

from __future__ import annotations

import signal
import sys
import threading
from contextlib import closing
from pathlib import Path

import hanging_game
import numpy as np
import pytest
from game_servers import started
from waiting import wait_for

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


@pytest.mark.long
def test_sigterm_ends_it_while_a_game_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUMITE_PATH", str(Path(hanging_game.__file__).parent))
    name, told = "python:hanging_game:make", tmp_path / "told"
    words = ["--game", name, "--set", f"game.options.told={told}", "--port", "PORT"]
    with started([*COMMAND[:4], *words]) as (process, port):
        game = make_spread(
            name,
            2,
            workers=(f"127.0.0.1:{port}",),
            credentials=Credentials(),
            max_frames=None,
            options={"told": str(told)},
        )
        game.reset(np.arange(2, dtype=np.uint64))
        playing = threading.Thread(target=game.step, args=(game.idle_actions(),))
        playing.start()
        wait_for(told.exists)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        playing.join()
        assert sorted(game.failures) == [0, 1]

"""Compares the speed of Showdown battles in this league and in poke-env's own loop.

    .venv/bin/python tests/bench/showdown.py [BATTLES [MATCHES...]]

Random players fight, first in this league's game with several matches at once. Then two of
poke-env's RandomPlayers fight over a Showdown server on this machine, with the same number of
battles at once. The script needs the programs that docs/showdown.md installs.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from league.games.hosted import HostedGame
from league.games.registry import make_batched
from league.games.showdown.server import Server

FORMAT = "gen9randombattle"
TICK = os.sysconf("SC_CLK_TCK")


def seconds(pids: Iterable[int]) -> float:
    """Returns the CPU time of these processes."""
    fields = (Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids)
    return sum(int(field[11]) + int(field[12]) for field in fields) / TICK


def children(pids: Iterable[int]) -> list[int]:
    found = (Path(f"/proc/{pid}/task/{pid}/children").read_text().split() for pid in pids)
    return [int(pid) for one in found for pid in one]


def ours(battles: int, matches: int, workers: int) -> tuple[float, float, float, float]:
    """Returns battles and decisions per second, CPU seconds per battle, and the simulators' share
    of them.
    """
    game = make_batched(f"showdown:{FORMAT}", matches, workers=workers)
    assert isinstance(game, HostedGame)
    game.bots_N2[:] = 0
    game.reset(np.arange(matches, dtype=np.uint64))
    pids = game.worker_pids
    simulators = children(pids)
    everyone = [os.getpid(), *pids, *simulators]
    began, all_began, simulators_began = time.perf_counter(), seconds(everyone), seconds(simulators)
    ended, decisions = 0, 0
    while ended < battles:
        decisions += int((game.observations_N2O[:, :, 0] > 0).sum())
        game.step(game.idle_actions())
        ended += int(game.ended_N.sum())
        game.next_seeds_N[:] = np.arange(matches) + ended + matches
    elapsed = time.perf_counter() - began
    used, simulated = seconds(everyone) - all_began, seconds(simulators) - simulators_began
    game.close()
    return ended / elapsed, decisions / elapsed, used / ended, simulated / used


def theirs(battles: int, at_once: int) -> tuple[float, float, float, float]:
    """Returns the same figures for poke-env's loop: two RandomPlayers in one process, and the
    server.
    """
    from poke_env import AccountConfiguration, ServerConfiguration
    from poke_env.player import RandomPlayer

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    decisions = 0

    class Counting(RandomPlayer):
        def choose_move(self, battle):
            nonlocal decisions
            decisions += 1
            return super().choose_move(battle)

    with Server(port):
        address = f"ws://127.0.0.1:{port}/showdown/websocket", "http://127.0.0.1:9/"
        one, other = (
            Counting(
                account_configuration=AccountConfiguration(name, None),
                battle_format=FORMAT,
                server_configuration=ServerConfiguration(*address),
                max_concurrent_battles=at_once,
            )
            for name in ("bench one", "bench other")
        )
        asyncio.run(one.battle_against(other, n_battles=at_once))  # warms both up
        node = tree(children([os.getpid()]))
        everyone = [os.getpid(), *node]
        decisions = 0
        began, all_began, server_began = time.perf_counter(), seconds(everyone), seconds(node)
        asyncio.run(one.battle_against(other, n_battles=battles))
        elapsed = time.perf_counter() - began
        used, served = seconds(everyone) - all_began, seconds(node) - server_began
        for player in (one, other):
            asyncio.run(player.ps_client.stop_listening())
    return battles / elapsed, decisions / elapsed, used / battles, served / used


def tree(pids: list[int]) -> list[int]:
    """Returns these processes and all their descendants."""
    return [*pids, *tree(children(pids))] if pids else []


def main(battles: int = 200, *matches: int) -> None:
    print("who\tat once\tbattles/s\tdecisions/s\tprocessor s a battle\tsimulator's share")
    for at_once in matches or (1, 16, 64):
        rows = {
            "this league, 1 worker": ours(battles, at_once, 1),
            "this league, 2 workers": ours(battles, at_once, min(2, at_once)),
            "poke-env": theirs(battles, at_once),
        }
        for who, (each, decided, used, share) in rows.items():
            print(
                f"{who}\t{at_once}\t{each:.1f}\t{decided:,.0f}\t{used:.3f}\t{share:.0%}", flush=True
            )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

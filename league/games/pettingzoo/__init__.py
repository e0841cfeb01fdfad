"""Two-player PettingZoo environments as games of the league: `pettingzoo:MODULE`.

`spaces.py` reads what an environment is, `environment.py` plays one, `worker.py` holds several of
them in a process, `pool.py` replaces processes that hang or die, and `game.py` is the game that the
league sees.
"""

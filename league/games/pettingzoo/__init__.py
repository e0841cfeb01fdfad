"""Turns two-player PettingZoo environments into games of the league: `pettingzoo:MODULE`.

`environment.py` makes an environment, reads its spaces and plays it from two seats. `workers.py`
runs several environments in a worker process. `game.py` is the game that the league plays.
"""

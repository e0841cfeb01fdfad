"""Two-player PettingZoo environments as games of the league: `pettingzoo:MODULE`.

`environment.py` makes an environment, reads its spaces and plays it from two seats, `workers.py`
holds several of them in each of some processes, and `game.py` is the game that the league sees.
"""

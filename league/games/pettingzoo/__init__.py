"""Makes two-player PettingZoo environments games of the league: `pettingzoo:MODULE`.

`environment.py` makes an environment, reads its spaces and plays it from two seats. `workers.py`
holds several environments in a process. `game.py` is the game that the league sees.
"""

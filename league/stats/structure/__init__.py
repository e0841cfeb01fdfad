"""The structure of a league: who is worth playing, how cyclic it is, who is a copy of whom."""

"""The formats of Showdown that the league plays."""

from league.games.showdown.kinds import Doubles, Kind, Singles

FORMATS: dict[str, Kind] = {"gen9randombattle": Singles(), "gen9vgc2025regi": Doubles()}

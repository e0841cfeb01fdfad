"""Pokémon Showdown as a game of the league: battles in the simulator itself, without a server."""

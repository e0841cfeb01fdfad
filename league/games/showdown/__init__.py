"""Plays Pokémon Showdown in the league: battles in the simulator itself, without a server."""

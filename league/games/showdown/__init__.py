"""Plays battles of Pokémon Showdown in the league, directly in its simulator without a server."""

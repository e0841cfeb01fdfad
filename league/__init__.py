"""What every part of the league shares: vocabulary, statistics, games, agents, the client."""

__version__ = "0.1.0"

"""Holds the parts that all services share: vocabulary, statistics, games, agents, the client."""

__version__ = "0.1.0"

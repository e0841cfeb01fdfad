"""Stages to be in, and what the matchmaker noted of them, for the tests of stages."""

from league.stages import Stage

STAGES = (
    Stage(
        name="first",
        mix="constant",
        until_opponent="based",
        until_win_rate=0.7,
        min_matches=4,
        max_steps=900,
    ),
    Stage(name="second", mix="league", reward="duel"),
    Stage(name="last", mix="league"),
)


def events(league, *kinds):
    with league.server.store.read() as reader:
        return [event for event in reader.events(0, 1000) if event.kind in kinds]

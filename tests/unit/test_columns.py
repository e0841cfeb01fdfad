"""Weights of many candidates are those of one after the other."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from league.players import Book, Player, PlayerKind
from league.stats.ratings import Link, RatingTable
from league.stats.ratings.epochs import Epoch
from matchmaker.sampling.candidates import candidate_of
from matchmaker.sampling.columns import columns_of, weights_of
from matchmaker.sampling.mixes import Policy, candidate_weights

RULES = (
    "uniform",
    "latest",
    "recent",
    "quality",
    "pfsp_hard",
    "pfsp_var",
    "pfsp_linear",
    "pfsp_capped",
)
LEARNER = Player(name="main", game="brawl", kind=PlayerKind.LIVE)
NAMES = [f"main@{number}" for number in range(8)] + ["based", "random"]
games = st.lists(
    st.tuples(
        st.sampled_from(["main", *NAMES]),
        st.sampled_from(["main", *NAMES]),
        st.sampled_from([0.0, 0.5, 1.0]),
    ),
    max_size=40,
)


def player(name):
    kind = PlayerKind.SNAPSHOT if "@" in name else PlayerKind.BOT
    return Player(name=name, game="brawl", kind=kind)


def table(played, pinned=(), link=None):
    made = RatingTable()
    if link is not None:
        made.epoch = Epoch(0, 0, 0.1, link)
    for name, mu in pinned:
        made.pin(name, mu)
    made.fold_all((first, second, outcome, 0, 0) for first, second, outcome in played)
    return made


@settings(max_examples=60, deadline=None)
@given(
    games,
    games,
    st.lists(st.tuples(st.sampled_from(NAMES), st.floats(0, 50)), max_size=2),
    st.builds(Link, st.floats(0.5, 2.0), st.sampled_from([0.0, 0.4, 1.0])),
    st.builds(
        Policy,
        rule=st.sampled_from(RULES),
        power=st.sampled_from([0.5, 2.0, 3.0]),
        prior_games=st.floats(0.1, 50.0),
        recent_count=st.integers(1, 4),
    ),
    st.lists(st.sampled_from(NAMES), unique=True),
)
def test_weights_in_columns_are_those_of_each(train, clean, pinned, link, policy, names):
    tables = {Book.TRAIN: table(train, pinned, link), Book.EVAL: table(clean, pinned)}
    players = [player(name) for name in names]
    candidates = [candidate_of(one, LEARNER, tables) for one in players]
    columns = columns_of(players, LEARNER, tables)
    assert list(columns.names) == names
    assert columns.predicted_N.tolist() == pytest.approx(
        [one.predicted for one in candidates], rel=1e-12
    )
    assert columns.quality_N.tolist() == pytest.approx(
        [one.quality for one in candidates], rel=1e-12
    )
    found = weights_of(policy, columns)
    assert found == pytest.approx(candidate_weights(policy, candidates), rel=1e-9)
    assert all(type(weight) is float for weight in found)


@settings(max_examples=60, deadline=None)
@given(games, st.lists(st.tuples(st.sampled_from(NAMES), st.floats(0, 50)), max_size=3))
def test_columns_of_beliefs_are_those_of_each(played, pinned):
    made = table(played, pinned)
    names = ["nobody", *NAMES]
    columns = made.columns(names)
    for place, name in enumerate(names):
        belief = made.belief(name)
        assert (columns.mu_N[place], math.sqrt(columns.variance_N[place])) == (
            belief.mu,
            belief.sigma,
        )
        assert columns.has_N[place] == made.has(name)
        assert columns.knows_N[place] == made.knows(name)


def test_an_unknown_rule_is_an_error():
    tables = {Book.TRAIN: RatingTable(), Book.EVAL: RatingTable()}
    with pytest.raises(ValueError, match="'best' is no sampling rule"):
        weights_of(Policy(rule="best"), columns_of([player("based")], LEARNER, tables))

"""Each of the twenty reasons in a set-up that is broken for it alone: named first, its consequences below."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
import sick

from league.agent import config as agent_config
from learner.doctor.causes import LEADS_TO, Cause, primary_causes
from learner.doctor.diagnosis import judge
from learner.doctor.environment_evidence import look_at_environment
from learner.doctor.evidence import Evidence
from learner.doctor.findings import REASONS, Verdict
from learner.doctor.game_evidence import look_at_game
from learner.doctor.probe import probe


@cache
def healthy_play():
    """What the healthy game shows; cases that break nothing of it share this."""
    made = sick.set_up()
    return look_at_game(made), look_at_environment(made)


def examine(set_up, *, same_game=True):
    game, environment = healthy_play() if same_game else (look_at_game(set_up), look_at_environment(set_up))
    return judge(Evidence(set_up=set_up, game=game, environment=environment, probe=probe(set_up, updates=3)))


def causes(set_up, **kind) -> tuple[Cause, ...]:
    return primary_causes(examine(set_up, **kind))


def named(found):
    return {cause.finding.key: {one.key for one in cause.consequences} for cause in found}


def test_nothing_is_wrong_with_a_healthy_set_up():
    findings = examine(sick.set_up())
    assert {finding.key for finding in findings} >= {str(number) for number in range(1, 21)}
    assert [(one.key, one.measured) for one in findings if one.verdict is not Verdict.OK] == []


GAMES = [
    ("1", sick.Frozen, {"4"}),
    ("2", sick.Deaf, set()),
    ("3", sick.Unseeded, set()),
    ("4", sick.Blindfold, set()),
    ("5", sick.NotANumber, {"12", "16", "V"}),
]


@pytest.mark.parametrize(("key", "game", "below"), GAMES, ids=[game.__name__ for _, game, _ in GAMES])
def test_a_broken_game_is_named(key, game, below):
    found = causes(sick.playing(game), same_game=False)
    assert found[0].finding.key == key
    assert found[0].finding.verdict is Verdict.FAILURE
    assert list(named(found)) == [key]
    assert below <= named(found)[key]


def test_a_dead_key_is_named_and_only_warned_of():
    (cause,) = causes(sick.playing(sick.OneKeyDead), same_game=False)
    assert (cause.finding.key, cause.finding.verdict) == ("2", Verdict.WARNING)
    assert "none: space" in cause.finding.measured


USUAL = {"win": 10.0, "knockout": 5.0, "damage": 1.0, "toward_opponent": 0.6}
LARGE = {term: 1e4 * weight for term, weight in USUAL.items()}
SMALL = {term: 1e-8 * weight for term, weight in USUAL.items()}
SETTINGS = [
    ("6", "no weights", sick.weights(), {"7", "O", "V"}),
    ("7", "wins alone", [*sick.weights(win=10.0), "learner.gamma=0.9"], set()),
    (
        "8",
        "huge",
        [*sick.weights(**LARGE), "learner.normalize_returns=false"],
        {"12"},
    ),
    ("8", "tiny", sick.weights(**SMALL), set()),
    ("9", "one term", sick.weights(win=0.1, toward_opponent=100.0), set()),
    ("10", "reversed", sick.weights(win=-10.0, knockout=-5.0, damage=-1.0, toward_opponent=0.6), set()),
    ("16", "too high", ["learner.learning_rate=10"], set()),
    ("16", "too low", ["learner.learning_rate=1e-10", "learner.learning_rate_final=1e-10"], set()),
    ("17", "one decision", ["learner.n_steps=2", "learner.batch_size=2"], set()),
    ("18", "no key ever", ["agent.key_bias=-10"], set()),
    ("19", "short-sighted", ["learner.gamma=0.3"], set()),
    ("20", "clip", ["learner.clip_range=1e-7", "learner.n_epochs=8"], set()),
    ("20", "target", ["learner.target_kl=1e-12", "learner.n_epochs=8"], set()),
]


@pytest.mark.parametrize(
    ("key", "flags", "below"), [(key, flags, below) for key, _, flags, below in SETTINGS],
    ids=[f"{key}-{name}" for key, name, _, _ in SETTINGS],
)  # fmt: skip
def test_a_broken_setting_is_named(key, flags, below):
    found = causes(sick.set_up(*flags))
    assert [cause.finding.key for cause in found] == [key]
    assert below <= named(found)[key]


NETWORKS = [("11", sick.Detached, set()), ("12", sick.Loud, set()), ("15", sick.Remembering, set())]


@pytest.mark.parametrize(("key", "network", "below"), NETWORKS, ids=[n.__name__ for _, n, _ in NETWORKS])
def test_a_broken_network_is_named(key, network, below):
    found = causes(replace(sick.set_up(), network=network))
    assert [cause.finding.key for cause in found] == [key]
    assert found[0].finding.verdict is Verdict.FAILURE
    assert below <= named(found)[key]


def test_a_network_that_can_hold_nothing_is_too_small(monkeypatch):
    few = {"width": 4, "attention_heads": 1, "feed_forward": 4, "observation_hidden": 4}
    monkeypatch.setitem(agent_config.SIZES, "tiny", {"layers": 2, **few, "memory": 2, "head_widths": (2,)})
    found = causes(sick.set_up())
    assert [cause.finding.key for cause in found] == ["13"]


def test_a_network_that_learns_two_matches_by_heart_is_too_large():
    flags = ["agent.size=base", "agent.sequence_length=33", "learner.matches=2", "learner.n_steps=16"]
    found = causes(sick.set_up(*flags, "learner.batch_size=32", "learner.n_epochs=4"))
    assert [cause.finding.key for cause in found] == ["14"]


@pytest.mark.parametrize(("key", "environment"), [("B", sick.Clipping), ("15", sick.Endless)])
def test_a_broken_environment_is_named(key, environment):
    found = causes(replace(sick.set_up(), environment=environment), same_game=False)
    assert [cause.finding.key for cause in found] == [key]
    assert found[0].finding.verdict is Verdict.FAILURE


def test_causes_have_no_circle_and_name_known_reasons():
    assert set(LEADS_TO) | {key for keys in LEADS_TO.values() for key in keys} <= set(REASONS)
    done: set[str] = set()

    def visit(key, above):
        assert key not in above, [*above, key]
        if key not in done:
            for following in LEADS_TO.get(key, ()):
                visit(following, [*above, key])
            done.add(key)

    for key in LEADS_TO:
        visit(key, [])

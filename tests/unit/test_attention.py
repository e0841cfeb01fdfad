"""What an agent looked at in a recorded match is what it saw while it played, and the picture
shows it.
"""

import io
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from agents import TINY, network
from PIL import Image

from league.agent.perceptron import PerceptronConfig, PerceptronNetwork
from league.agent.snapshot import SnapshotCard
from league.agent.strategy import get_strategy_latent, observations_of
from league.contest.matches import Bout, play_bouts
from league.errors import InvalidInput
from league.games.base import CHOICE, EXTERNAL
from league.games.registry import game_spec
from league.replay import Contender, MatchRecorder, Recipe
from league.replay.match import final_digest
from league.views.attention import Event, agent_seat, draw, events_of, key_frames, read_match

SKIP, FRAMES = 4, 150
AGENT = network(TINY, 5).eval()
CARD = SnapshotCard(
    agent=TINY, game="brawl", game_version=game_spec("brawl").version, frame_skip=SKIP
)


@pytest.fixture(scope="module")
def played():
    """A replay of AGENT in seat 1 against `based`, and the latents of its decisions as it made
    them.
    """
    recipe = Recipe(name="brawl", version=CARD.game_version, max_frames=FRAMES)
    game = recipe.make()
    bots = (game.spec.bot_index("based"), EXTERNAL)
    contenders = (Contender(name="based"), Contender(name="main@5", digest="ab" * 32))
    take = MatchRecorder(recipe=recipe, seats=contenders, bots=bots, seed=4)
    game.bots_N2[0] = bots
    game.reset(np.array([4], np.uint64))
    state, latents, actions = AGENT.initial_state(1), [], game.idle_actions()
    rng = np.random.default_rng(1)
    for frame in range(FRAMES):
        if frame % SKIP == 0:
            with torch.inference_mode():
                seen = torch.from_numpy(game.observations_N2O[:, 1].astype(np.float32))
                out = AGENT.step(seen, torch.tensor([frame == 0]), state, torch.ones(1))
            state = out.state
            latents.append(out.latent_BD[0].numpy())
            actions[0, 1] = rng.random(10) < 0.3  # whatever luck chooses
        take.note(actions[0])
        game.step(actions)
        if game.ended_N[0]:
            break
    replay = take.finish(float(game.outcomes_N[0]), final_digest(game, 0))
    game.close()
    return replay, np.stack(latents)


@pytest.fixture(scope="module")
def reading(played):
    return read_match(played[0], 1, AGENT, CARD)


def test_it_reads_the_latents_that_the_agent_had_when_it_played(played, reading):
    _, latents = played
    np.testing.assert_allclose(reading.latent_TD, latents, atol=1e-5)
    assert np.ptp(latents, axis=0).max() > 0.1, "they say something"
    assert reading.frame_T.tolist() == list(range(0, FRAMES, SKIP))
    assert (reading.names, reading.seat) == (("based", "main@5"), 1)


def test_get_strategy_latent_reads_them_off_a_recorded_match(played):
    replay, latents = played
    seen_TO = observations_of(replay, 1, SKIP)
    found_TD = get_strategy_latent(AGENT, seen_TO)
    np.testing.assert_allclose(found_TD, latents, atol=1e-5)
    np.testing.assert_allclose(get_strategy_latent(AGENT, seen_TO[:9]), latents[:9], atol=1e-5)
    with pytest.raises(InvalidInput, match=r"shape \(74,\)"):
        get_strategy_latent(AGENT, seen_TO[0])


def test_weights_are_shares_of_the_outputs_that_there_are(reading):
    for weights_TP in (reading.latent_TP, reading.context_TP):
        assert weights_TP.shape == (len(reading.frame_T), TINY.pool)
        np.testing.assert_allclose(weights_TP.sum(1), 1.0, atol=1e-5)
        for decision in range(TINY.pool - 1):
            assert np.all(weights_TP[decision, : TINY.pool - 1 - decision] == 0.0)
            assert np.all(weights_TP[decision, TINY.pool - 1 - decision :] > 0.0)
    assert not np.allclose(reading.latent_TP, reading.context_TP)
    ages = [6 * SKIP / 30, 5 * SKIP / 30]
    np.testing.assert_allclose(reading.age_P[[0, 1, -1]], [*ages, 0.0])


def test_whose_attention_is_read(played):
    replay = played[0]
    assert agent_seat(replay, None) == agent_seat(replay, 1) == 1
    with pytest.raises(InvalidInput, match=r"based.*--seat 1"):
        agent_seat(replay, 0)
    bots = replace(replay, seats=(Contender(name="based"), Contender(name="random")))
    with pytest.raises(InvalidInput, match=r"based.*random"):
        agent_seat(bots, None)


def test_what_has_no_attention_or_plays_something_else_is_refused(played):
    plain = PerceptronNetwork(PerceptronConfig(observation_size=64, action_size=10))
    with pytest.raises(InvalidInput, match="main@5"):
        read_match(played[0], 1, plain, CARD)
    with pytest.raises(InvalidInput, match=r"main@5.*kuhn.*brawl"):
        read_match(played[0], 1, AGENT, replace(CARD, game="kuhn"))
    large = network(replace(TINY, observation_size=80), 0)
    with pytest.raises(InvalidInput, match=r"main@5 sees 80 numbers.* 74"):
        read_match(played[0], 1, large, replace(CARD, agent=large.config))


def fight(*states):
    """Frames of (damage, stocks) of both seats."""
    return [{"players": [{"damage": d, "stocks": s} for d, s in state]} for state in states]


def test_hits_and_knock_outs_are_what_changed_between_frames():
    frames = fight(((0, 3), (0, 3)), ((0, 3), (7, 3)), ((0, 3), (7, 3)), ((2, 3), (0, 2)))
    events = events_of(frames, None, 4)
    assert events == [Event(1, 1, 7), Event(3, 0, 2), Event(3, 1, math.inf)]
    assert events_of(frames, 0, 9) == [*events, Event(3, 1, math.inf)], "the end's comes last"
    assert events_of(frames, 0, 4) == events, "by time, without a knock-out"
    assert events_of([{"seats": []}] * 3, 0, 9) == []


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (0, 100, [20, 40, 60, 80]),  # knock-outs, then the hardest hits
        (30, 100, [40, 60, 80, 90]),
        (0, 15, [3, 7, 11, 13]),  # nothing happened
        (0, 1, [0]),
    ],
)
def test_key_frames_are_apart_and_begin_with_what_matters(first, last, expected):
    hits = [(19, 30.0), (40, 12.0), (80, 20.0), (81, 19.0), (48, 1.0)]
    events = [Event(frame, 0, damage) for frame, damage in hits]
    events += [Event(20, 0, math.inf), Event(60, 1, math.inf)]
    chosen = key_frames(events, first, last, 4)
    assert chosen == sorted(set(chosen))
    assert all(first <= frame <= last for frame in chosen)
    assert chosen == expected


def test_a_game_of_choices_is_read_and_drawn_too():
    spec = game_spec("leduc")
    sizes = {"observation_size": spec.observation_size, "own_size": spec.own_size}
    config = replace(TINY, **sizes, action_size=spec.action_size, action_kind=CHOICE)
    agent = network(config, 1).eval()
    card = SnapshotCard(agent=config, game="leduc", game_version=spec.version, frame_skip=1)
    recipe = Recipe(name="leduc", version=spec.version)
    bout = Bout(
        seats=(Contender(name="main@1", digest="ab" * 32), Contender(name="random")),
        bots=(EXTERNAL, 0),
        seed=3,
    )
    (replay,) = play_bouts(recipe, [bout], lambda digest: agent, frame_skip=1, seed=0)
    found = read_match(replay, 0, agent, card)
    assert found.events == []
    assert len(found.frame_T) == replay.frames
    with Image.open(io.BytesIO(draw(found))) as image:
        assert image.size == (1600, 1160)

"""Behaviour cloning: what is learnt is what the player saw and did, and the loss is what it says."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from agents import TINY, network

from league.agent.bouts import paired, play_bouts
from league.agent.config import SIZES, AgentConfig
from league.errors import DataCorrupt, InvalidInput, NotFound, NumericalFault, VersionMismatch
from league.games.base import EXTERNAL
from league.games.registry import game_spec, make_batched
from league.games.settings import GameSettings
from league.replay import Bout, Contender, Recipe, Replay, save_replay, verify
from learner.cloning.baseline import marginal_log_loss, rates_A
from learner.cloning.demonstrations import (
    Demonstration,
    demonstrations,
    keys_of_decisions,
    read_replays,
)
from learner.cloning.settings import CloningSettings
from learner.cloning.streams import Chunk, Streams
from learner.cloning.training import evaluate, log_loss, new_network, split, train

GAME = GameSettings(name="brawl", match_seconds=5, frame_skip=4, reward="laptop")
BASED, RANDOM = (GAME.spec().bot_index(name) for name in ("based", "random"))
SMALL = replace(TINY, width=16, feed_forward=32, memory=16, observation_hidden=16)
QUICK = CloningSettings(epochs=2, streams=4, sequence=16, held_out=0.25)


def bouts(matches: int = 8) -> list[Bout]:
    return paired(Contender(name="based"), Contender(name="random"), (BASED, RANDOM), matches, 3, "based")


def recorded(disturb: float = 0.0, matches: int = 8) -> list[tuple[Path, Replay]]:
    replays = play_bouts(
        Recipe.of(GAME), bouts(matches), lambda _: network(), frame_skip=1, seed=0, disturb=disturb
    )
    return [(Path(f"{n}.replay"), replay) for n, replay in enumerate(replays)]


@pytest.fixture(scope="module")
def plain() -> list[tuple[Path, Replay]]:
    return recorded()


@pytest.fixture(scope="module")
def disturbed() -> list[tuple[Path, Replay]]:
    return recorded(0.2)


def demos(replays: list[tuple[Path, Replay]], name: str = "based") -> list[Demonstration]:
    return demonstrations(replays, name, frame_skip=4, key_rule="taps")


def made_up(lengths: list[int], config: AgentConfig = SMALL, seed: int = 0) -> list[Demonstration]:
    """Matches of random numbers; some decisions are not the player's own."""
    rng = np.random.default_rng(seed)
    return [
        Demonstration(
            n,
            rng.uniform(-1, 1, (length, config.observation_size)).astype(np.float32),
            (rng.random((length, config.action_size)) < 0.3).astype(np.uint8),
            None,
            rng.random(length) < 0.8,
        )
        for n, length in enumerate(lengths)
    ]


# -- recording ----------------------------------------------------------------------------------------


def test_what_is_recorded_side_by_side_verifies_alone(
    plain: list[tuple[Path, Replay]], disturbed: list[tuple[Path, Replay]]
) -> None:
    for _, replay in plain + disturbed:
        verify(replay)
    assert len({replay.match_id for _, replay in plain}) == 8
    seats = sorted((replay.seed, replay.seats[0].name) for _, replay in plain)
    assert seats == [(seed, name) for seed in range(3, 7) for name in ("based", "random")]


def test_more_matches_than_rows_are_all_played(monkeypatch: pytest.MonkeyPatch) -> None:
    together = {r.match_id: r for _, r in recorded()}
    monkeypatch.setattr("league.agent.bouts.ROWS", 3)
    apart = {r.match_id: r for _, r in recorded()}
    assert apart.keys() == together.keys()
    for match_id, replay in apart.items():
        assert np.array_equal(replay.actions_T2A, together[match_id].actions_T2A)


def test_a_snapshot_is_recorded_at_its_own_pace() -> None:
    crowd = Contender(name="a", digest="a"), Contender(name="b", digest="b")
    made = paired(*crowd, (EXTERNAL, EXTERNAL), 4, 0)
    replays = list(play_bouts(Recipe.of(GAME), made, lambda _: network(), frame_skip=4, seed=0))
    for replay in replays:
        verify(replay)
        first = replay.actions_T2A[::4].repeat(4, axis=0)[: replay.frames]
        assert np.array_equal(replay.actions_T2A, first)
        assert replay.actions_T2A.any()
    again = list(play_bouts(Recipe.of(GAME), made, lambda _: network(), frame_skip=4, seed=1))
    assert not all(np.array_equal(a.actions_T2A, b.actions_T2A) for a, b in zip(replays, again, strict=False))


def test_who_meets_itself_plays_every_match_but_once() -> None:
    made = paired(Contender(name="based"), Contender(name="based"), (BASED, BASED), 6, 0)
    assert sorted(bout.seed for bout in made) == list(range(6))


def test_mistakes_take_their_share_and_are_marked(disturbed: list[tuple[Path, Replay]]) -> None:
    frames = sum(replay.frames for _, replay in disturbed)
    taken = 0
    for _, replay in disturbed:
        for seat, first, count in replay.disturbed:
            assert replay.seats[seat].name == "based"
            held = replay.actions_T2A[first : first + count, seat]
            assert (held == held[0]).all()
            taken += count
    assert 0.1 < taken / frames < 0.3


def test_between_mistakes_the_bot_plays_itself(disturbed: list[tuple[Path, Replay]]) -> None:
    """Played again up to a frame that is its own, the bot does what is recorded."""
    replay = next(r for _, r in disturbed if r.disturbed)
    (seat,) = {span[0] for span in replay.disturbed}
    game = replay.recipe.make()
    game.reset(np.array([replay.seed], np.uint64))
    marked = {f for _, first, count in replay.disturbed for f in range(first, first + count)}
    unlike = 0
    for now, actions_2A in enumerate(replay.actions_T2A):
        state = game.save()
        game.bots_N2[0, seat] = BASED
        game.step(actions_2A[None])
        differs = not np.array_equal(game.played_N2A()[0, seat], actions_2A[seat])
        unlike += differs
        assert not (differs and now not in marked), f"frame {now}"
        game.load(state)
        game.step(actions_2A[None])
    assert unlike


def test_a_bot_at_an_agents_pace_plays_what_its_clone_learns() -> None:
    """Its keys change only where decisions are, and each decision is learnt as it was made."""
    replays = play_bouts(
        Recipe.of(GAME), bouts(), lambda _: network(), frame_skip=1, seed=0, pace=4, disturb=0.1
    )
    listed = [(Path("x"), replay) for replay in replays]
    for (_, replay), demonstration in zip(listed, demos(listed), strict=True):
        verify(replay)
        keys_FA = replay.actions_T2A[:, [s.name for s in replay.seats].index("based")]
        held_FA = keys_FA[::4].repeat(4, axis=0)[: len(keys_FA)]
        own_F = demonstration.own_T.repeat(4)[: len(keys_FA)]
        assert np.array_equal(keys_FA[own_F], held_FA[own_F])
        assert np.array_equal(
            demonstration.actions_TA[demonstration.own_T], keys_FA[::4][demonstration.own_T]
        )
        assert not demonstration.own_T.all()


def test_taps_are_followed_by_presses() -> None:
    """based taps the jump key every other frame, and jumps as often as it can. Held on, the key jumps once:
    an agent of its pace that presses what based has down in any frame does not cross the pit to win."""
    game = GameSettings(name="brawl", match_seconds=30, frame_skip=4, reward="laptop")
    constant = game.spec().bot_index("constant")
    made = paired(Contender(name="based"), Contender(name="constant"), (BASED, constant), 12, 0, "based")
    played = play_bouts(Recipe.of(game), made, lambda _: network(), frame_skip=1, seed=0, pace=4)
    scores = [r.outcome if r.seats[0].name == "based" else 1 - r.outcome for r in played]
    assert min(scores) > 0.0


# -- what was seen and done ---------------------------------------------------------------------------

TAPPED = np.array([[0, 0], [1, 0], [0, 0], [0, 1], [1, 1], [0, 0]], np.uint8)


@pytest.mark.parametrize(
    ("rule", "frame_skip", "keys"),
    [
        ("any", 4, [[1, 1], [1, 1]]),
        ("taps", 4, [[1, 1], [0, 1]]),
        ("taps", 2, [[1, 0], [0, 1], [1, 1]]),
        ("taps", 1, TAPPED.tolist()),
        ("majority", 4, [[0, 0], [1, 1]]),
        ("first", 4, [[0, 0], [1, 1]]),
        ("any", 2, [[1, 0], [0, 1], [1, 1]]),
        ("majority", 3, [[0, 0], [0, 1]]),
        ("first", 1, TAPPED.tolist()),
    ],
)
def test_keys_of_decisions(rule: str, frame_skip: int, keys: list[list[int]]) -> None:
    assert keys_of_decisions(TAPPED, frame_skip, rule).tolist() == keys


@pytest.mark.parametrize("name", ["based", "random"])
def test_it_sees_what_the_player_saw(plain: list[tuple[Path, Replay]], name: str) -> None:
    found = demos(plain, name)
    assert len(found) == len(plain)
    for (_, replay), demonstration in zip(plain, found, strict=True):
        seat = [s.name for s in replay.seats].index(name)
        game = make_batched("brawl", 1, max_frames=150)
        game.reset(np.array([replay.seed], np.uint64))
        for frame, actions_2A in enumerate(replay.actions_T2A):
            if frame % 4 == 0:
                assert np.array_equal(demonstration.obs_TO[frame // 4], game.observations_N2O[0, seat])
            game.step(actions_2A[None])
        assert len(demonstration) == -(-replay.frames // 4)
        assert demonstration.own_T.all()


def test_a_disturbed_decision_is_not_the_players_own(disturbed: list[tuple[Path, Replay]]) -> None:
    for (_, replay), demonstration in zip(disturbed, demos(disturbed), strict=True):
        frames = {f for _, first, count in replay.disturbed for f in range(first, first + count)}
        for t, own in enumerate(demonstration.own_T):
            assert own == frames.isdisjoint(range(4 * t, 4 * t + 4))
    assert all(d.own_T.all() for d in demos(disturbed, "random"))


# -- the loss -----------------------------------------------------------------------------------------


def chunk(actions: list[int], legal: list[bool] | None = None) -> Chunk:
    shape = (1, 1, len(actions))
    return Chunk(
        torch.zeros(1, 1, 1),
        torch.ones(1, 1, dtype=torch.bool),
        torch.tensor(actions).float().view(shape),
        None if legal is None else torch.tensor(legal).view(shape),
        torch.ones(1, 1),
        0,
    )


def test_the_loss_of_keys_is_their_log_loss() -> None:
    logits = torch.tensor([0.3, -1.2, 2.0]).view(1, 1, 3)
    p = torch.sigmoid(logits).flatten().tolist()
    wanted = -math.log(p[0]) - math.log(1 - p[1]) - math.log(1 - p[2])
    assert float(log_loss("keys", logits, chunk([1, 0, 0]))) == pytest.approx(wanted, rel=1e-5)


def test_smoothing_keeps_an_unused_key_possible() -> None:
    """The loss has its minimum, a gradient of 0, where the keys have the smoothed rates."""
    logits = torch.logit(torch.tensor([0.05, 0.95])).view(1, 1, 2).requires_grad_()
    log_loss("keys", logits, chunk([0, 1]), smoothing=0.1).sum().backward()
    assert logits.grad is not None
    assert logits.grad.flatten().tolist() == pytest.approx([0.0, 0.0], abs=1e-6)


def test_the_loss_of_a_choice_is_over_the_legal_ones() -> None:
    logits = torch.tensor([1.0, 0.0, 5.0]).view(1, 1, 3).requires_grad_()
    loss = log_loss("choice", logits, chunk([1, 0, 0], [True, True, False]))
    assert float(loss.detach()) == pytest.approx(math.log(1 + math.exp(-1.0)), rel=1e-5)
    smoothed = log_loss("choice", logits, chunk([1, 0, 0], [True, True, False]), smoothing=0.2)
    wanted = 0.9 * math.log(1 + math.exp(-1.0)) + 0.1 * math.log(1 + math.exp(1.0))
    assert float(smoothed.detach()) == pytest.approx(wanted, rel=1e-5)
    smoothed.sum().backward()
    assert logits.grad is not None
    assert float(logits.grad[0, 0, 2]) == 0.0


def test_in_streams_the_loss_is_that_of_playing_step_by_step() -> None:
    """Whatever the streams and sequences: memory and history run over a whole match and never beyond it."""
    net, found = network(SMALL), made_up([70, 5, 33, 41, 1, 64])
    lost, steps = 0.0, 0
    with torch.no_grad():
        for d in found:
            state = net.initial_state(1)
            for t in range(len(d)):
                out = net.step(
                    torch.from_numpy(d.obs_TO[t : t + 1]), torch.tensor([t == 0]), state, torch.zeros(1)
                )
                state = out.state
                if d.own_T[t]:
                    x = torch.from_numpy(d.actions_TA[t]).float()
                    p = torch.sigmoid(out.logits_BA[0])
                    lost -= float((x * p.log() + (1 - x) * (1 - p).log()).sum())
                    steps += 1
    for streams, sequence in [(1, 16), (3, 7), (6, 200), (50, 32)]:
        settings = CloningSettings(streams=streams, sequence=sequence)
        assert evaluate(net, Streams(found, streams), settings) == pytest.approx(lost / steps, abs=1e-4)


def test_the_baseline_is_the_entropy_of_the_rates() -> None:
    ones = np.ones(100, np.bool_)
    actions = np.zeros((100, 3), np.uint8)
    actions[:25, 0], actions[:, 1] = 1, 1
    found = [Demonstration(0, np.zeros((100, 4), np.float32), actions, None, ones)]
    assert rates_A(found).tolist() == pytest.approx([25.5 / 101, 100.5 / 101, 0.5 / 101])
    wanted = -(0.25 * math.log(0.25) + 0.75 * math.log(0.75))
    assert marginal_log_loss(found, found) == pytest.approx(wanted, abs=0.012)


def test_a_fresh_network_is_the_baseline(plain: list[tuple[Path, Replay]]) -> None:
    found = demos(plain)
    net = new_network(replace(SMALL, history_stride=4), found, seed=0)
    assert evaluate(net, Streams(found, 4), QUICK) == pytest.approx(marginal_log_loss(found, found), abs=0.02)


# -- training -----------------------------------------------------------------------------------------


def test_whole_seeds_are_held_out(plain: list[tuple[Path, Replay]]) -> None:
    found = demos(plain)
    learnt, held_out = split(found, QUICK)
    assert (len(learnt), len(held_out)) == (6, 2)
    assert {d.seed for d in learnt}.isdisjoint(d.seed for d in held_out)
    again = split(found, QUICK)
    assert [d.seed for d in again[1]] == [d.seed for d in held_out]
    others = {split(found, CloningSettings(held_out=0.25, seed=s))[1][0].seed for s in range(8)}
    assert len(others) > 1


def test_too_few_matches_are_refused(plain: list[tuple[Path, Replay]]) -> None:
    with pytest.raises(InvalidInput, match="2 matches on 1 seeds are too few"):
        split([d for d in demos(plain) if d.seed == 3], QUICK)


def trained(found: list[Demonstration], settings: CloningSettings = QUICK):
    learnt, held_out = split(found, settings)
    net = new_network(SMALL, learnt, settings.seed)
    return net, list(train(net, learnt, held_out, settings)), held_out


def test_it_learns_and_the_same_seed_learns_the_same(plain: list[tuple[Path, Replay]]) -> None:
    found = demos(plain)
    settings = QUICK.model_copy(update={"epochs": 15, "learning_rate": 0.01})
    net, epochs, held_out = trained(found, settings)
    learnt = split(found, QUICK)[0]
    assert min(e.held_out for e in epochs) < 0.9 * marginal_log_loss(learnt, held_out)
    again, _, _ = trained(found, settings)
    assert all(torch.equal(a, b) for a, b in zip(net.parameters(), again.parameters(), strict=True))
    starts = [new_network(SMALL, learnt, seed).memory.recurrent for seed in (0, 1)]
    torch.rand(1)  # whatever else was drawn
    assert torch.equal(starts[0], new_network(SMALL, learnt, 0).memory.recurrent)
    assert not torch.equal(*starts)
    other, _, _ = trained(found, settings.model_copy(update={"seed": 1}))
    assert not all(torch.equal(a, b) for a, b in zip(net.parameters(), other.parameters(), strict=True))


def test_it_stops_early_and_keeps_the_best() -> None:
    """Noise can't be learnt: the held-out loss soon rises, and the weights from before that are kept."""
    settings = QUICK.model_copy(update={"epochs": 50, "patience": 2, "learning_rate": 0.01})
    net, epochs, held_out = trained(made_up([60] * 8), settings)
    best = min(epochs, key=lambda epoch: epoch.held_out)
    assert len(epochs) == best.number + 2 < 50
    assert [epoch.number for epoch in epochs if epoch.is_best][-1] == best.number
    rates = [epoch.learning_rate for epoch in epochs]
    assert rates == [settings.learning_rate_at(n + 1) for n in range(len(epochs))] == sorted(rates)[::-1]
    judged = Streams(sorted(held_out, key=len, reverse=True), settings.streams)
    assert evaluate(net, judged, settings) == pytest.approx(best.held_out, abs=1e-5)


def test_what_is_not_the_players_own_is_not_learnt() -> None:
    """Keys pressed in its stead: whatever they are, the weights are the same."""
    first, second = made_up([40] * 8), made_up([40] * 8)
    for demonstration in second:
        demonstration.actions_TA[~demonstration.own_T] ^= 1
    nets = [trained(found)[0] for found in (first, second)]
    assert all(torch.equal(a, b) for a, b in zip(nets[0].parameters(), nets[1].parameters(), strict=True))


def test_a_loss_that_is_no_number_stops_it() -> None:
    found = made_up([40] * 8)
    for demonstration in found:
        demonstration.obs_TO[:] = np.nan
    with pytest.raises(NumericalFault, match=r"lower cloning\.learning_rate"):
        trained(found)


def test_a_game_of_choices_is_cloned() -> None:
    """Kuhn's Nash player acts by its card: who sees the card loses less than who knows the rates."""
    game = GameSettings(name="kuhn", reward="dense")
    spec = game_spec("kuhn")
    bots = (spec.bot_index("nash"), spec.bot_index("random"))
    made = paired(Contender(name="nash"), Contender(name="random"), bots, 400, 0)
    replays = play_bouts(Recipe.of(game), made, lambda _: network(), frame_skip=1, seed=0)
    listed = [(Path("x"), replay) for replay in replays]
    found = demonstrations(listed, "nash", frame_skip=1, key_rule="taps")
    assert all(d.legal_TA is not None and d.actions_TA.sum(-1).all() for d in found)
    settings = CloningSettings(epochs=12, streams=16, learning_rate=0.01)
    learnt, held_out = split(found, settings)
    sizes = SIZES["tiny"] | {"width": 16, "feed_forward": 32, "memory": 16, "observation_hidden": 16}
    config = AgentConfig(
        observation_size=spec.observation_size,
        own_size=spec.own_size,
        action_size=spec.action_size,
        action_kind=spec.action_kind,
        sequence_length=17,
        **sizes,
    )
    net = new_network(config, learnt, 0)
    epochs = list(train(net, learnt, held_out, settings))
    assert min(e.held_out for e in epochs) < 0.75 * marginal_log_loss(learnt, held_out)


# -- bad input ----------------------------------------------------------------------------------------


def folder_of(tmp_path: Path, replays: list[Replay]) -> Path:
    for n, replay in enumerate(replays):
        save_replay(tmp_path / f"{n}.replay", replay)
    return tmp_path


def test_a_folder_without_replays_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="holds no replays"):
        read_replays(tmp_path, GAME)
    with pytest.raises(NotFound, match="there is no folder"):
        read_replays(tmp_path / "none", GAME)


def test_replays_of_another_game_or_rules_are_named(tmp_path: Path, plain: list[tuple[Path, Replay]]) -> None:
    good = plain[0][1]
    folder = folder_of(tmp_path, [good, replace(good, recipe=replace(good.recipe, version="0"))])
    with pytest.raises(VersionMismatch, match=r"1\.replay was played under version 0 of the rules"):
        read_replays(folder, GAME)
    with pytest.raises(InvalidInput, match=r"0\.replay is a match of brawl, \[game\] is kuhn"):
        read_replays(folder, GameSettings(name="kuhn", reward="dense"))


def test_a_name_that_never_occurs_is_told_with_near_ones(plain: list[tuple[Path, Replay]]) -> None:
    with pytest.raises(NotFound, match=r"'bassed' sits in the 8 replays: did you mean 'based'"):
        demos(plain, "bassed")
    with pytest.raises(NotFound, match="there are based, random"):
        demos(plain, "zzz")


def test_a_forged_replay_is_named(plain: list[tuple[Path, Replay]]) -> None:
    path, replay = plain[2]
    keys = replay.actions_T2A.copy()
    keys[-1, 0] ^= 1
    with pytest.raises(DataCorrupt, match=r"2\.replay: the match, played again, ended in another state"):
        demos([*plain[:2], (path, replace(replay, actions_T2A=keys)), *plain[3:]])
    with pytest.raises(DataCorrupt, match=r"2\.replay: .*frames"):
        demos([*plain[:2], (path, replace(replay, actions_T2A=replay.actions_T2A[:-1]))])


def test_a_player_that_the_game_plays_anew_can_not_be_cloned(plain: list[tuple[Path, Replay]]) -> None:
    path, replay = plain[0]
    seats = tuple(replace(s, bot=s.name) for s in replay.seats)
    with pytest.raises(InvalidInput, match="does not hold what based did"):
        demos([(path, replace(replay, seats=(seats[0], seats[1])))])

"""What a learner takes over from the snapshot or checkpoint that it starts from, and what starts
from 0.
"""

from __future__ import annotations

import itertools

import pytest
import torch
from game_run import make_game_run
from learner_process import matchmaker, snapshots

from league.errors import ConfigError
from league.rpc.client import MatchmakerClient
from league.runs.blobs import BlobFolder
from league.stages import Place
from learner import main
from learner.train.build import initial_values
from learner.train.checkpoint import CheckpointFolder
from learner.train.session import Session

STAGES = "[{name='short', mix='constant', max_steps=256}, {name='end', mix='league'}]"
SETTINGS = (
    "learner.desired_kl=1e-9",  # no update is that small: the step size is steered down
    "learner.forecast_coef=0.3",
    "regularisation.alpha=0.1",
    f"curriculum.stages={STAGES}",
)
STEPS = 512
NOWHERE = "curriculum.stages=[{name='x', mix='nowhere'}]"
NO_REWARD = "curriculum.stages=[{name='x', mix='league', reward='y'}]"


class League:
    """One in which `main` has learnt for a few updates; `begin` starts further learners, who
    don't play.
    """

    def __init__(self, folder, server):
        self.folder, self.server = folder, server
        self._numbers = itertools.count(1)
        self.learn("--steps", str(STEPS))
        folder = CheckpointFolder(self.folder / "learner-main" / "checkpoints")
        self.checkpoint, self.saved = str(folder.files()[0]), folder.read_newest()

    def learn(self, *flags, ends=0):
        words = ["--matchmaker", self.server.address, "--run-dir", str(self.folder), "--cpu"]
        settings = [word for setting in SETTINGS for word in ("--set", setting)]
        assert main.main([*words, "--preset", "smoke", "--name", "main", *settings, *flags]) == ends

    def begin(self, *flags):
        """The session of a new learner, before its first rollout."""
        begun = []

        def leave(session):
            begun.append(session)
            session.leave()

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Session, "run", leave)
            self.learn("--name", f"learner{next(self._numbers)}", *flags)
        return begun[0]


@pytest.fixture(scope="module")
def league(tmp_path_factory):
    folder = tmp_path_factory.mktemp("league")
    with matchmaker(folder) as server, pytest.MonkeyPatch.context() as patch:
        patch.setattr(main, "stop_flag", lambda: lambda: False)  # the signals are pytest's
        yield League(folder, server)


@pytest.fixture
def snapshot(league):
    with MatchmakerClient(league.server.address) as client:
        (player,) = [one for one in snapshots(client) if one.name == f"main@{STEPS}"]
    return player


def same(found, expected):
    return found.keys() == expected.keys() and all(
        torch.equal(found[name], expected[name]) for name in found
    )


def has_weights(session, expected):
    return same(session.model.policy.network.state_dict(), expected["network"])


def begins_anew(session):
    """That nothing is taken over but what a learner has learnt."""
    model = session.model
    assert (model.num_timesteps, model._n_updates, session.model.env.learner_step) == (0, 0, 0)
    assert session.publisher.last_step == 0
    assert session.stages.curriculum.place == Place()
    assert model.references.members == []
    assert session.model.env.assignments == [None] * session.model.env.num_envs
    fresh = torch.Generator()
    fresh.manual_seed(session.parts.settings.learner.seed)
    assert torch.equal(model.key_rng.get_state(), fresh.get_state())
    assert not any(part.any() for part in model.agent_state)


def has_no_more_than_weights(session, expected):
    model = session.model
    assert model.policy.optimizer.state_dict()["state"] == {}
    assert model.rate.scale == 1.0
    assert not same(model.policy.forecast.state_dict(), expected["forecast"])


def test_a_checkpoint_gives_weights_optimizer_return_scale_and_steered_step_size(league):
    session = league.begin("--from", league.checkpoint)
    model, algorithm = session.model, league.saved["algorithm"]
    assert algorithm["num_timesteps"] == STEPS
    assert algorithm["updates"] > 0
    assert algorithm["references"]["members"]
    assert league.saved["curriculum"]["index"] == 1
    assert has_weights(session, algorithm)
    assert same(model.policy.forecast.state_dict(), algorithm["forecast"])
    state, expected = model.policy.optimizer.state_dict()["state"], algorithm["optimizer"]["state"]
    assert state.keys() == expected.keys()
    for index, moments in expected.items():
        assert same(state[index], moments)
    assert model.return_scale.state() == algorithm["return_scale"]
    assert model.return_scale.count > 0
    assert model.rate.scale == algorithm["rate_scale"] < 1.0
    assert session.publisher.parent == ""
    begins_anew(session)


@pytest.mark.parametrize("source", ["checkpoint", "snapshot", "weights of snapshot", "file"])
def test_weights_alone_come_from_a_checkpoint_if_asked_and_with_their_scale_from_a_snapshot(
    league, snapshot, source
):
    """A member's name is the parent of what is trained from it."""
    flags = {
        "checkpoint": (league.checkpoint, "--weights-only"),
        "snapshot": (snapshot.name,),
        "weights of snapshot": (snapshot.name, "--weights-only"),
        "file": (str(league.folder / "blobs" / f"{snapshot.digest}.safetensors"),),
    }
    session = league.begin("--from", *flags[source])
    assert has_weights(session, league.saved["algorithm"])
    has_no_more_than_weights(session, league.saved["algorithm"])
    returns, saved = session.model.return_scale, league.saved["algorithm"]["return_scale"]
    if "--weights-only" in flags[source]:
        assert (returns.count, returns.scale) == (0.0, 1.0)
    else:
        deviation = (saved["m2"] / saved["count"]) ** 0.5
        assert (returns.count, returns.scale) == (STEPS, pytest.approx(deviation, rel=1e-6))
    assert session.publisher.parent == (snapshot.name if "snapshot" in source else "")
    begins_anew(session)


def test_a_resumed_learner_remembers_the_update_that_broke_its_policy(league):
    league.learn("--steps", "256", "--name", "broken")
    folder = CheckpointFolder(league.folder / "learner-broken" / "checkpoints")
    saved = folder.read_newest()
    assert saved["broke"] == 0.0
    folder.write(256, {**saved, "broke": 9.0})
    assert league.begin("--steps", "512", "--name", "broken").reporter.broke == 9.0


def test_a_learner_that_starts_from_a_snapshot_publishes_and_starts_so_once(
    league, snapshot, tmp_path, capsys
):
    words = ("--steps", "256", "--name", "second", "--from", snapshot.name)
    league.learn(*words)
    with MatchmakerClient(league.server.address) as client:
        child = snapshots(client)[-1]
    assert (child.name, child.parent) == ("second@256", snapshot.name)
    league.learn(*words, "--if-new")
    league.learn(*words, ends=2)
    start = f"--from {snapshot.name}"
    said = f"{start}: second in {league.folder} has made steps already; leave --from out"
    assert said in capsys.readouterr().err
    league.learn(*words, "--run-dir", str(tmp_path), "--name", "third", ends=2)
    assert f"{tmp_path / 'blobs'}: --run-dir" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--from", "nobody"], "--from nobody: neither a member of this league nor a file"),
        (["--set", "learner.learning_rat=1"], "did you mean 'learning_rate'?"),
        (["--set", NOWHERE], "lacks: it has based, bots, constant, league"),
        (["--set", NO_REWARD], "no reward preset 'y'"),
        (["--ranks", "3"], "learner.matches is 16, which can't be divided among 3 ranks"),
    ],
)
def test_bad_input_is_one_sentence(league, capsys, flags, sentence):
    league.learn("--name", "bad", *flags, ends=2)
    assert sentence in capsys.readouterr().err


def test_without_a_start_the_weights_are_its_own(league):
    session = league.begin()
    assert not has_weights(session, league.saved["algorithm"])
    begins_anew(session)


def test_a_learner_does_not_start_from_an_agent_of_another_game(tmp_path):
    digest = make_game_run(tmp_path / "run", ["game.name=kuhn"])
    file = tmp_path / "run" / "blobs" / f"{digest}.safetensors"
    with pytest.raises(ConfigError, match=r"\bkuhn\b.*\bbrawl\b"):
        initial_values(str(file), BlobFolder(tmp_path), [], "brawl")
    values, parent = initial_values(str(file), BlobFolder(tmp_path), [], "kuhn")
    assert values["network"]
    assert parent == ""

"""The presets say what the documentation says of them."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from league.agent.config import AgentConfig
from league.errors import ConfigError
from league.games.base import CHOICE
from league.games.registry import game_spec, reward_weights
from league.players import CATEGORIES, Player, PlayerKind, Role
from league.settings.base import resolve
from league.settings.presets import preset_names
from learner.distributed.rank_group import RankGroup
from learner.settings import StageSettings
from learner.train.build import SessionSettings, annealed_share, check_stages, stage_rewards
from learner.train.curriculum import Curriculum, StageRunner
from matchmaker.sampling.candidates import members


def differences(first, second):
    """Names of the settings in which two presets differ."""
    one, other = resolve(first, environment={}), resolve(second, environment={})
    return {
        f"{section}.{key}"
        for section, values in one.items()
        for key, value in values.items()
        if value != other[section][key]
    }


def test_the_short_run_rehearses_the_long_one():
    assert differences("test", "full") == {
        "game.match_seconds",
        "learner.steps",
        "learner.matches",
        "learner.n_steps",
        "learner.batch_size",
        "learner.snapshot_interval",
        "curriculum.stages",
        "matchmaker.max_saved",
    }
    short, long = (
        resolve(name, environment={})["curriculum"]["stages"] for name in ("test", "full")
    )
    lengths = ("min_matches", "max_steps")
    for one, other in zip(short, long, strict=True):
        assert all(one[key] == other[key] for key in one if key not in lengths)


@pytest.mark.parametrize(
    ("preset", "steps", "rollouts", "interval", "kept"),
    [("test", 50_000, 20, 5_000, 10), ("full", 10_000_000, 300, 50_000, 200)],
)
def test_lengths(preset, steps, rollouts, interval, kept):
    sections = resolve(preset, environment={})
    learner = sections["learner"]
    assert learner["steps"] == steps
    assert learner["steps"] // (learner["matches"] * learner["n_steps"]) >= rollouts
    assert (learner["snapshot_interval"], sections["matchmaker"]["max_saved"]) == (interval, kept)


@pytest.mark.parametrize("preset", ["laptop", "full"])
def test_stages_go_from_constant_to_based_to_bots_to_the_league(preset):
    sections = resolve(preset, environment={})
    first, second, third, last = sections["curriculum"]["stages"]
    assert (first["until_opponent"], first["until_win_rate"]) == ("constant", 0.9)
    assert (second["until_opponent"], second["until_win_rate"]) == ("based", 0.7)
    assert (third["mix"], third["until_opponent"]) == ("bots", "")
    assert (last["mix"], last["until_opponent"]) == ("league", "")
    mix = sections["matchmaker"]["mixes"]["league"]
    total = sum(mix.values()) - mix["rivals"] - mix["exploiters"]  # there are none at first
    shares = {category: weight / total for category, weight in mix.items()}
    known = {"self": 0.221, "snapshots": 0.398, "fencer": 0.071, "platform_holder": 0.035}
    known |= {"constant": 0.044, "defensive": 0.035}  # bots that teach to cross the pit
    assert {name: shares[name] for name in known} == pytest.approx(known, abs=0.002)


def test_full_is_the_laptops_training_of_the_large_agent():
    full, laptop = (resolve(preset, environment={}) for preset in ("full", "laptop"))
    assert (full["agent"]["size"], full["game"]["frame_skip"]) == ("large", 1)
    stages = [
        [(s["mix"], s["reward"]) for s in of["curriculum"]["stages"]] for of in (full, laptop)
    ]
    assert stages[0] == stages[1]
    for section, key in (
        ("game", "reward"),
        ("learner", "ent_coef"),
        ("learner", "ent_coef_final"),
    ):
        assert full[section][key] == laptop[section][key]
    frames = [of["game"]["frame_skip"] / (1 - of["learner"]["gamma"]) for of in (full, laptop)]
    assert frames == [pytest.approx(200), pytest.approx(200)]


def checked(sections):
    """The settings of a learner, after the checks that its start makes."""
    settings = SessionSettings.of(sections)
    check_stages(settings, sections["matchmaker"]["mixes"])
    return settings


def test_the_file_in_the_documentation_can_be_trained_with(tmp_path):
    page = Path(__file__).resolve().parents[2] / "docs" / "settings.md"
    (example,) = re.findall(
        r"<!-- resolved by tests/unit/test_presets.py -->\n```toml\n(.*?)```",
        page.read_text(),
        re.DOTALL,
    )
    file = tmp_path / "mine.toml"
    file.write_text(example)
    sections = resolve(file=file, environment={})
    checked(sections)
    laptop = resolve("laptop", environment={})["matchmaker"]["mixes"]
    assert sections["matchmaker"]["mixes"] == {**laptop, "league": {"snapshots": 8.0, "based": 2.0}}
    assert sections["learner"]["steps"] == 3_000_000


@pytest.mark.parametrize("preset", sorted({*preset_names()} - {"showdown"}))  # needs a simulator
def test_every_preset_can_be_built(preset):
    settings = checked(resolve(preset, environment={}))
    spec = settings.game.spec()
    config = AgentConfig.of(settings.agent, spec)
    seconds = config.sequence_length * settings.game.frame_skip / spec.frames_per_second
    covers_a_match = spec.action_kind == CHOICE and seconds > spec.max_frames
    wanted = {"fast": 1.5, "stable": 3.0, "t4": 3.0}.get(preset, 2.2)
    assert covers_a_match or seconds == pytest.approx(wanted, abs=0.1)


@pytest.mark.parametrize(
    ("preset", "name", "words"),
    [
        ("laptop", "agressive", "'agressive'.*'aggressive'"),
        (
            "laptop",
            "xyz",
            "'xyz'.* constant, random, .*, exploiters, victims, clone, reference, rivals$",
        ),
        ("board", "based", "'based'.* kuhn"),
    ],
)
def test_a_mix_names_only_who_can_be_met(preset, name, words):
    sections = resolve(preset, assignments=[f"matchmaker.mixes.league.{name}=1"], environment={})
    with pytest.raises(ConfigError, match=words):
        checked(sections)
    everybody = ["snapshots", "self", "exploiters", "clone", "reference", "rivals", "random"]
    checked(resolve(preset, assignments=[f"matchmaker.mixes.league.{one}=1" for one in everybody]))


def test_every_category_has_its_players():
    kinds = {
        PlayerKind.REFERENCE: [Role.NONE],
        PlayerKind.RIVAL: [Role.NONE],
        PlayerKind.SNAPSHOT: list(Role),
    }
    players = [
        Player(name=f"{kind.value}-{role.value}@1", game="brawl", kind=kind, role=role)
        for kind, roles in kinds.items()
        for role in roles
    ]
    learner = Player(name="main", game="brawl", kind=PlayerKind.LIVE)
    league = {player.name: player for player in players}
    apart = {"victims"}  # an exploiter's generation has those
    assert all(
        members(category, learner, league) for category in CATEGORIES if category not in apart
    )
    assert members("based", learner, league) == []


@pytest.mark.parametrize("held_out", ["edge_guarder", "mirror", "drunk", "planner_16"])
def test_no_mix_can_name_a_held_out_bot(held_out):
    sections = resolve("laptop", environment={})
    settings = SessionSettings.of(sections)
    mixes = {**sections["matchmaker"]["mixes"], "spare": {"snapshots": 1.0, held_out: 0.1}}
    with pytest.raises(ConfigError, match=f"'spare' .*{held_out}"):
        check_stages(settings, mixes)


def test_the_reward_curriculum_turns_dense_into_sparse_by_the_training_step():
    sections = resolve(
        "smoke", assignments=["game.reward=curriculum", "learner.steps=1000"], environment={}
    )
    settings, brawl = SessionSettings.of(sections), game_spec("brawl")
    logged, env = {}, SimpleNamespace(reward_weights_K=None)
    model = SimpleNamespace(env=env, logger=SimpleNamespace(record=logged.__setitem__))
    nobody = SimpleNamespace(enter_stage=lambda *_: None)
    staging = StageRunner(
        settings, nobody, RankGroup(), Curriculum(settings.curriculum, "main"), 1, 0
    )
    for step, preset, share in ((0, "dense", 0.0), (1000, "sparse", 1.0)):
        model.num_timesteps = step
        staging.set_rewards(model)
        assert env.reward_weights_K.tolist() == reward_weights(brawl, preset).tolist()
        assert logged == {"reward/annealed_share": share}
    model.num_timesteps = 500
    staging.set_rewards(model)
    assert logged == {"reward/annealed_share": pytest.approx(0.5)}
    assert reward_weights(brawl, "dense")[0] < env.reward_weights_K[0]
    assert env.reward_weights_K[0] < reward_weights(brawl, "sparse")[0]
    steady = StageSettings(name="steady", mix="league", reward="duel")
    assert stage_rewards(settings, steady, 500).tolist() == reward_weights(brawl, "duel").tolist()
    assert annealed_share(settings, steady, 500) is None

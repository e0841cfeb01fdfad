"""The study of league training: its settings, exact values, and table."""

from argparse import Namespace

import numpy as np
import pytest
import tomlkit
from bench_programs import bench_program

from league.games import exact
from league.games.registry import make_batched
from league.settings.base import resolve

pays = bench_program("league_pays")


@pytest.mark.parametrize("game", ["brawl", "kuhn"])
@pytest.mark.parametrize("arm", pays.ARMS)
def test_settings_of_an_arm_are_those_of_its_preset_with_another_mix(tmp_path, arm, game):
    file = tmp_path / "settings.toml"
    file.write_text(tomlkit.dumps(pays.settings_of(arm, game, 3, started=True)))
    found = resolve(file=file, environment={})
    (stage,) = found["curriculum"]["stages"]
    mix = found["matchmaker"]["mixes"][stage["mix"]]
    known = ("self", "snapshots", "exploiters")
    shares = {name: mix.get(name, 0.0) / sum(mix.values()) for name in known}
    bots = {"bots": 1.0, "past_and_bots": 0.39, "exploiters": 0.1}.get(arm, 0.0)
    if arm == "today":
        bots = 1.0 - sum(shares.values())
    assert sum(shares.values()) == pytest.approx(1.0 - bots)
    wanted = {name: share for name, share in pays.ARMS[arm]["mix"].items() if name in known}
    assert {name: shares[name] for name in wanted} == pytest.approx(wanted)
    exploiters = [one for one in found["supervisor"]["learners"] if one["role"] != "main"]
    assert bool(exploiters) == (arm == "exploiters")
    assert found["learner"]["seed"] == 3


def test_a_later_call_may_not_change_the_number_of_seeds(tmp_path):
    given = {"game": "kuhn", "folder": tmp_path, "start": None, "arms": ["pfsp"], "until": 0.0}
    pays.opened(Namespace(**given, seeds=5))
    assert pays.opened(Namespace(**given | {"arms": ["bots"]}, seeds=5))["seeds"] == 5
    with pytest.raises(SystemExit, match="6"):
        pays.opened(Namespace(**given, seeds=6))


def test_a_mixture_is_paid_what_its_members_are_paid_on_average():
    tree = exact.game_tree(exact.rules_of(make_batched("kuhn", 1)))
    rng = np.random.default_rng(0)
    chosen = [tree.legal_KA * rng.random(tree.legal_KA.shape) ** 4 for _ in range(3)]
    tables = [table_KA / table_KA.sum(-1, keepdims=True) for table_KA in chosen]
    players = {"0": tables[0], "1": tables[1], "mixed": pays.mixture(tree, tables[:2])}
    players |= {"mean": (tables[0] + tables[1]) / 2, "rival": tables[2]}
    values = pays.computed(tree, players.__getitem__)
    first, second, mixed, mean = values(["0", "1", "mixed", "mean"], ["rival"])[:, 0]
    assert mixed == pytest.approx((first + second) / 2)
    assert mean != pytest.approx(mixed), "or a mean of tables would do"
    assert values(["rival"], ["mixed"])[0, 0] == pytest.approx(-mixed)


def test_p_values_are_of_paired_t_tests_with_all_seeds():
    less = {"pfsp": [1.0, 2.0, 3.0], "bots": [1.0, 1.1, 0.9], "latest": [5.0, 5.1]}
    p = pays.p_values(less, 3)
    assert p == pytest.approx({"pfsp": 0.0742, "bots": 2 * 0.00332}, rel=1e-2)


def test_the_table_compares_arms_seed_by_seed():
    results = {
        "today": {0: {"won": 1.0}, 1: {"won": 5.0}},
        "pfsp": {0: {"won": 2.0, "lost": 7.0}, 1: {"won": 6.2}},
        "bots": {1: {"won": 3.0}},
    }
    head, _, *rows, _, _ = pays.table(results, "today", 2).splitlines()
    assert [cell.strip() for cell in head.split("|")[1:-1]] == ["arm", "seeds", "won", "lost"]
    today, pfsp, bots = ([cell.strip() for cell in row.split("|")[1:-1]] for row in rows)
    assert today[:2] == ["today", "2 of 2"]
    assert today[2].startswith("3.000 ± 25.4")
    assert "(1.100 ± 1.271, p 0.058)" in pfsp[2]
    assert pfsp[3] == "7.000"
    assert bots[1:] == ["1 of 2", "3.000 (-2.000)", ""]


def test_blotto_is_a_game_that_is_even(tmp_path):
    (tmp_path / "blotto.csv").write_text(pays.blotto())
    game = make_batched(f"matrix:{tmp_path}/blotto.csv", 1)
    tree = exact.game_tree(exact.rules_of(game))
    assert game.spec.action_size == 21
    assert exact.expected_value(tree, exact.uniform_table(tree)) == pytest.approx(0.0)
    assert exact.nash_conv(tree, exact.uniform_table(tree)) > 0.0

"""``bin/league mix``: which opponents a learner met, from a log whose matches are known."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from ratings_league import at_step, pair
from small_league import played, small_league, snapshot

from league.cli.main import main
from league.errors import NotFound
from league.players import Role
from matchmaker import limits
from matchmaker.sampling.candidates import Pool, candidates_of
from matchmaker.tools.mix import Met, matches_of, parts_of

MIX = {"self": 1.0, "snapshots": 2.0, "exploiters": 1.0, "random": 2.0}
EXPLOITER = "hunter.g1@500"


def test_scores_are_expected_as_by_the_sampler_when_it_drew(tmp_path: Path) -> None:
    """Each batch is drawn with other results known. What failed or was taken back is left out."""
    with small_league(tmp_path, mixes={"league": MIX}, within_snapshots="uniform") as league:
        client, view = league.client, league.server.league.view
        client.register_players([snapshot(500, "hunter.g1", role=Role.MAIN_EXPLOITER, parent="")])
        number, wanted = league.open(), []
        for batch in range(8):
            pair(league, "main@1000", "random", 2, worker=f"evaluator-{batch}")
            league.clock.advance(limits.DRAW_SECONDS)
            if batch == 6:  # the last two batches were after the checkpoint that it returns to
                kept, position = list(wanted), client.status().log_position
            matches = client.acquire_matches(number, 12, "league")
            pool = Pool(
                league.server.league.settings, view.players["main"], view.players, view.tables
            )
            results = []
            for place, match in enumerate(matches):
                rival = view.players[match.opponent.name]
                (chance,) = candidates_of([rival], pool).chances().tolist()
                kind = {"main": "self", "random": "bots", EXPLOITER: "exploiters"}
                is_self, step = rival.name == "main", 1000 * batch + place
                outcome = 1.0 if place % 3 else 0.0
                fails = place == 5
                if not fails:
                    score = 1.0 - outcome if match.learner_seat else outcome
                    chance = 0.5 if is_self else chance
                    wanted.append(Met(kind.get(rival.name, "snapshots"), step, chance, score))
                results.append(replace(at_step(played(match, outcome), step), failed=fails))
            client.report_results(number, results)
        with league.server.store.read() as reader:
            assert list(matches_of(reader, "main")) == wanted
            for stranger in ("nobody", "random"):
                with pytest.raises(NotFound, match=stranger):
                    list(matches_of(reader, stranger))
        assert {one.kind for one in wanted} == {"self", "snapshots", "exploiters", "bots"}
        assert len({one.expected for one in wanted}) > 12
        league.open(checkpoint=position)
        with league.server.store.read() as reader:
            assert list(matches_of(reader, "main")) == kept


MATCHES = [
    Met("bots", 0, 0.1, 0.0),
    Met("snapshots", 5, 0.5, 1.0),
    Met("self", 30, 0.5, 0.5),
    Met("bots", 31, 0.85, 1.0),
    Met("exploiters", 98, 0.2, 0.0),
    Met("bots", 99, 0.95, 0.5),
]


def test_parts_are_quarters_of_the_steps_or_their_last_share() -> None:
    first, second, last = parts_of(MATCHES)  # the third has no match
    assert [one["since_step"] for one in (first, second, last)] == [0, 25, 75]
    assert (last["until_step"], last["matches"]) == (100, 2)
    assert (first["expected"], first["score"]) == pytest.approx((0.3, 0.5))
    assert first["bands"]["below_.2"] == {
        "matches": 1, "share": 0.5, "expected": 0.1, "score": 0.0
    }  # fmt: skip
    assert {name: one["share"] for name, one in second["kinds"].items()} == {
        "self": 0.5, "bots": 0.5
    }  # fmt: skip
    assert {name: one["share"] for name, one in second["bands"].items()} == {
        ".2_to_.8": 0.5, "above_.8": 0.5
    }  # fmt: skip
    assert {name: one["share"] for name, one in last["bands"].items()} == {
        ".2_to_.8": 0.5, "above_.8": 0.5, "above_.9": 0.5
    }  # fmt: skip
    (most,) = parts_of(MATCHES, 0.7)
    assert (most["since_step"], most["matches"]) == (30, 4)
    assert parts_of([]) == []


def test_the_command_prints_a_table_or_an_object(
    finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["mix", "--run-dir", str(finished)]) == 0
    heads, *lines = (line.split("\t") for line in capsys.readouterr().out.splitlines())
    assert main(["mix", str(finished), "--last", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (whole,) = found["parts"]
    assert sum(int(line[1].replace(",", "")) for line in lines) == whole["matches"] > 0
    assert heads[2:6] == ["self", "snapshots", "exploiters", "bots"]
    assert found["player"] == "main"


@pytest.mark.parametrize(
    ("words", "value"), [(["--last", "0"], "--last 0"), (["--player", "nobody"], "'nobody'")]
)
def test_a_wrong_value_is_refused(
    words: list[str], value: str, finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["mix", str(finished), *words]) == 2
    assert value in capsys.readouterr().err

"""Gates of mains' snapshots in the log: restarts, the past, `fsck`, another policy's replay,
commands.
"""

from __future__ import annotations

import json
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from admission_league import MIXES, AdmissionLeague, admission_league, loses_always, wins_always
from small_league import live, played, snapshot
from test_matchmaker_process import matchmaker, ready_port

from league.cli.main import main
from league.errors import ConfigError, InvalidInput
from league.exploiters import GateState
from league.players import PlayerState
from league.rpc.client import MatchmakerClient
from league.settings.base import resolve
from league.stats.gates import Certificate
from matchmaker.acts import gating, judging
from matchmaker.settings import MatchmakerSettings
from matchmaker.simulate.replaying import replayed
from matchmaker.simulate.setting_up import set_up
from matchmaker.state import history
from matchmaker.state.exploiters import ExploiterState
from matchmaker.tools import gate_checks
from matchmaker.tools.fsck import fsck


def test_a_matchmaker_killed_in_the_middle_of_a_gate_loses_nothing_of_it(tmp_path: Path) -> None:
    db, config = tmp_path / "league.db", tmp_path / "config.toml"
    config.write_text('[matchmaker]\nadmit = "gate"\nmixes = {league = {snapshots = 1.0}}\n')
    with (
        matchmaker(db, "--config", str(config)) as process,
        MatchmakerClient(f"127.0.0.1:{ready_port(process)}") as client,
    ):
        client.register_players([live()])
        for step in (1000, 2000):
            client.register_players([snapshot(step, parent="", creator="learner-main")])
        number = client.open_incarnation("evaluator-0").number
        matches = client.acquire_gate_matches(number, "main@2000", 12)
        wins = [played(match, wins_always(match, "main@2000")) for match in matches]
        client.report_results(number, wins[:5])  # two pairs and a half; the others are in play
        before = client.decide_gate(number, "main@2000")
        process.send_signal(signal.SIGKILL)
        process.wait(10)
    with (
        matchmaker(db, "--config", str(config)) as process,
        MatchmakerClient(f"127.0.0.1:{ready_port(process)}") as client,
    ):
        (gate,) = client.gates()
        assert gate == before
        assert gate.victims[0].pairs == (0, 0, 0, 0, 2)
        client.report_results(number, wins)
        assert client.decide_gate(number, "main@2000").victims[0].pairs == (0, 0, 0, 0, 6)
        while gate.state is GateState.OPEN:
            matches = client.acquire_gate_matches(number, "main@2000", 8)
            client.report_results(number, [played(m, wins_always(m, "main@2000")) for m in matches])
            gate = client.decide_gate(number, "main@2000")
        assert gate.state is GateState.ACCEPTED
        process.send_signal(signal.SIGTERM)
        process.wait(10)
    assert fsck(db)[0] == []


def test_an_evaluator_that_dies_over_a_gate_leaves_half_pairs_out(tmp_path: Path) -> None:
    with admission_league(tmp_path) as league:
        league.register(2000)
        matches = league.lease("main@2000", 6)
        results = [played(match, wins_always(match, "main@2000")) for match in matches[:3]]
        league.client.report_results(league.evaluator, results)
        league.evaluator = league.client.open_incarnation("evaluator-0").number
        (test,) = league.client.decide_gate(league.evaluator, "main@2000").victims
        assert test.pairs == (0, 0, 0, 0, 1)
        gate = league.to_the_end("main@2000", loses_always)
        assert (gate.state, gate.victims[0].pairs[1:]) == (GateState.REJECTED, (0, 0, 0, 1))
        seeds = Certificate.from_json(gate.victims[0].certificate_json).seeds
        assert matches[0].seed in seeds
        assert {match.seed for match in matches[2:]}.isdisjoint(seeds)


def test_a_restarted_matchmaker_knows_gates_and_whom_they_are_against(tmp_path: Path) -> None:
    with admission_league(tmp_path) as league:
        league.begun(2000)
        league.register(3000)
        league.to_the_end("main@2000", wins_always)
        league.play("main@3000", wins_always)
        league.register(4000)
        kept = league.client.gates(certificates=True)
    with admission_league(tmp_path) as league:
        assert league.client.gates(certificates=True) == kept
        assert [gate.victims[0].victim for gate in kept] == ["main@1000", "main@2000", "main@2000"]
        league.register(5000)
        assert league.gate("main@5000").victims[0].victim == "main@2000"


def test_a_gate_goes_on_by_its_own_rules_when_the_settings_change(tmp_path: Path) -> None:
    with admission_league(tmp_path) as league:
        league.register(2000)
        league.play("main@2000", wins_always)
    with admission_league(tmp_path, admit="all", admission={"elo0": 0.0, "elo1": 300.0}) as league:
        assert league.register(3000).state is PlayerState.ACTIVE
        gate = league.to_the_end("main@2000", wins_always)
        certificate = Certificate.from_json(gate.victims[0].certificate_json)
        assert certificate.gate.test.values == (0.0, 35.0)


def test_the_league_as_it_was_knows_who_was_a_candidate(tmp_path: Path) -> None:
    with admission_league(tmp_path) as league:
        moments = []
        for step, outcome in ((2000, wins_always), (3000, loses_always)):
            league.register(step)
            moments.append(league.small.server.league.view.event_position)
            league.to_the_end(f"main@{step}", outcome)
            moments.append(league.small.server.league.view.event_position)
        with league.small.server.store.read() as reader:
            found = []
            for moment in moments:
                players = history.players_at(reader, history.Moment(0, moment, 0.0))
                found.append(
                    [p.state.value for p in players if p.name in ("main@2000", "main@3000")]
                )
        assert found == [["candidate"], ["active"], ["active", "candidate"], ["active", "retired"]]


def test_fsck_counts_the_gates_matches_again(tmp_path: Path) -> None:
    with admission_league(tmp_path, whole=False) as league:
        league.begun(2000)
        league.register(3000)
        league.to_the_end("main@2000", wins_always)
        inside = league.small.server.league
        (true,) = league.gate("main@2000").victims
        league.play("main@3000", wins_always)
        league.register(4000)
        # as if the last gate's matches had been this one's
        claimed = replace(true, victim="main@2000")
        decision = judging.Decision(state=GateState.ACCEPTED, tests=(claimed,))
        with inside.store.read() as reader:
            assert gate_checks.wrong_gates(reader) == []
        inside.store.submit(
            lambda tx: gating.decide(inside, tx, league.evaluator, "main@3000", decision)
        )
        let_in = replace(inside.view.players["main@4000"], state=PlayerState.ACTIVE)
        with inside.store.write() as tx:
            tx.update_player(let_in)
            tx.after_commit(lambda: inside.view.set_players([let_in]))
        assert "main@4000" in league.drawn()
        with inside.store.read() as reader:
            found = gate_checks.wrong_gates(reader)
    assert found[0] == (
        "the certificate of main@3000 against main@2000 is not what the matches of its gate give"
    )
    assert found[1] == "main@4000 is active, but its gate is open"
    assert found[2].startswith("nobody is drawn who has not passed a gate, but in ")
    assert len(found) == 3


def test_what_was_counted_is_kept_only_while_the_log_begins_with_it(tmp_path: Path) -> None:
    with admission_league(tmp_path) as league:
        league.register(2000)
        league.play("main@2000", wins_always, 8)
        view, fresh = league.small.server.league.view, ExploiterState()
        rules = view.exploiters.rules["main@2000"]
        with league.small.server.store.read() as reader:
            played_so_far = judging.played_of(reader, "main@2000", "main@1000", rules)
        kept = judging.taken_by(fresh, "main@2000", "main@1000", rules)
        for count in (2, 4, 8, 6, 8):  # a commit that failed took the last pair back in between
            part = played_so_far[:count]
            assert judging.tallied(part, rules, kept) == judging.tallied(part, rules)


def test_another_policy_is_replayed_among_members_alone(tmp_path: Path) -> None:
    with admission_league(tmp_path) as league:
        league.register(2000)
        assert league.drawn(200) == {"main@1000"}
        league.to_the_end("main@2000", loses_always)
        assert league.drawn(200) == {"main@1000"}
    found = replayed(tmp_path, MatchmakerSettings(mixes=MIXES, within_snapshots="uniform"), 100)
    assert {row.name for row in found.shares(1)} == {"main@1000"}


def said(
    league: AdmissionLeague, capsys: pytest.CaptureFixture[str], *words: str
) -> tuple[int, str, str]:
    code = main([*words, "--address", league.small.server.address])
    told = capsys.readouterr()
    return code, told.out, told.err


def test_commands_show_gates_and_hand_out_certificates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with admission_league(tmp_path) as league:
        league.register(2000)
        won = league.to_the_end("main@2000", wins_always).victims[0]
        league.register(3000)
        league.to_the_end("main@3000", loses_always)
        league.register(4000)
        league.play("main@4000", wins_always, 4)
        code, out, _ = said(league, capsys, "gates")
        head, *rows = [line.split("\t") for line in out.splitlines()]
        assert (code, head[:4]) == (0, ["candidate", "state", "member", "pairs"])
        assert [row[:4] for row in rows] == [
            ["main@2000", "accepted", "main@1000", f"0,0,0,0,{won.pairs[4]}"],
            ["main@3000", "rejected", "main@2000", f"{rows[1][3]}"],
            ["main@4000", "open", "main@2000", "0,0,0,0,2"],
        ]
        file = tmp_path / "certificate.json"
        assert said(league, capsys, "gates", "main@2000", "--out", str(file))[0] == 0
        assert Certificate.from_json(file.read_text()).subject.candidate == "main@2000"
        assert main(["sprt", "--certificate", str(file)]) == 0
        capsys.readouterr()
        _, out, _ = said(league, capsys, "gates", "main@3000")
        assert "gate\trejected: it is too weak against main@2000" in out
        assert "hypotheses\tlogistic Elo 0 against 35" in out
        code, _, err = said(league, capsys, "gates", "ghost")
        assert (code, err) == (
            1,
            "league: there is no candidate 'ghost': bin/league gates lists them\n",
        )
        assert (
            "gate\tmain@4000 against main@2000, 4-0-0 so far" in said(league, capsys, "status")[1]
        )
        told = json.loads(said(league, capsys, "status", "--json")[1])
        assert told["gates"] == ["main@4000 against main@2000, 4-0-0 so far"]
        assert said(league, capsys, "exploiters")[1].count("\n") == 1, "these are no exploiters"


def test_hypotheses_out_of_order_are_refused() -> None:
    with pytest.raises(ConfigError, match="elo0 = 35 must lie below elo1 = 35"):
        resolve("laptop", None, ["matchmaker.admission.elo0=35"])


def test_the_simulator_which_plays_no_gates_says_so() -> None:
    with pytest.raises(InvalidInput, match="the simulator plays no gates"):
        set_up("elo", MatchmakerSettings(admit="gate"), 10, 1, 0)

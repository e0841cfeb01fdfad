"""An operator changes a mix while the league runs: the next draws follow, through the matchmaker,
over its crashes, and every view names the change.
"""

from __future__ import annotations

import json
import math
import re
import sqlite3
from contextlib import contextmanager
from pathlib import Path

import pytest
from small_league import bot, live, rival, small_league
from staged import events
from test_matchmaker_process import matchmaker, ready_port

from league.cli.main import main
from league.errors import Forbidden, InvalidInput, NotFound, Refused
from league.players import Book, Pairing
from league.rpc.client import MatchmakerClient
from league.security.credentials import Credentials
from league.security.roles import AccessRole
from league.security.settings import SecuritySettings
from league.security.tokens import TokenFile
from league.status import PAUSED
from matchmaker import limits
from matchmaker.tools.fsck import fsck

MIXES = {"league": {"random": 1.0, "constant": 1.0}, "other": {"based": 1.0}}


@pytest.fixture
def league(tmp_path):
    with small_league(tmp_path, mixes=MIXES) as league:
        yield league


@contextmanager
def served(db, *flags):
    with (
        matchmaker(db, *flags) as process,
        MatchmakerClient(f"127.0.0.1:{ready_port(process)}") as client,
    ):
        yield process, client


def opponents(league, learner, count=40, mix="league"):
    matches, _, _ = league.play(learner, count, mix=mix)
    return {match.opponent.name for match in matches}, matches


def test_the_next_draws_follow_and_the_change_is_named(league):
    learner, client = league.open(), league.client
    assert opponents(league, learner)[0] == {"random", "constant"}
    change = client.set_mix("league", {"based": 5.0, "random": 0.0}, "anna@desk")
    (event,) = events(league, "mix_changed")
    assert (change.number, change.at, change.by) == (event.position, event.at, "anna@desk")
    assert all(word in event.text for word in ("anna@desk", "based = 5", "random = 0"))
    met, matches = opponents(league, learner)
    assert met == {"based", "constant"}
    why = json.loads(client.match(matches[0].match_id).why_json)
    assert why["changed"] == {"event": change.number, "at": change.at, "by": "anna@desk"}
    assert why["shares"] == pytest.approx({"constant": 1 / 6, "based": 5 / 6})
    assert opponents(league, learner, mix="other")[0] == {"based"}, "another mix stays"
    again = client.set_mix("league", {"constant": 0.0, "self": 1.0}, "bert@desk")
    assert opponents(league, learner)[0] == {"based", "main"}
    assert client.status().changes == (again,)


def test_shares_count_all_draws_and_those_since_the_change(league):
    learner, client = league.open(), league.client
    client.heartbeat(learner, 1, 10, "league")
    opponents(league, learner)
    assert {(share.matches_since, share.realised_since) for share in client.status().shares} == {
        (0, 0.0)
    }
    client.set_mix("league", {"based": 3.0, "random": 0.0}, "anna")
    opponents(league, learner)
    shares = {share.category: share for share in client.status().shares}
    assert (shares["constant"].configured, shares["based"].configured) == (0.25, 0.75)
    assert (shares["random"].configured, shares["random"].matches_since) == (0.0, 0)
    assert shares["random"].matches > 0
    assert sum(share.matches for share in shares.values()) == 80
    assert sum(share.matches_since for share in shares.values()) == 40
    based = shares["based"]
    assert based.matches_since == based.matches
    assert based.realised_since == pytest.approx(based.matches / 40)


@pytest.mark.parametrize(
    ("error", "sentence", "mix", "weights", "by"),
    [
        (NotFound, "no mix 'leage'.*'league'", "leage", {"based": 1.0}, "a"),
        (NotFound, "'base' is neither.*'based'", "league", {"base": 1.0}, "a"),
        (NotFound, "'main' is neither", "league", {"main": 1.0}, "a"),
        (InvalidInput, "hidden is held out", "league", {"hidden": 1.0}, "a"),
        (InvalidInput, r"league\.based = -1 ", "league", {"based": -1.0}, "a"),
        (InvalidInput, r"league\.based = nan ", "league", {"based": math.nan}, "a"),
        (InvalidInput, r"league\.based = inf ", "league", {"based": math.inf}, "a"),
        (InvalidInput, "no weight above 0", "other", {"based": 0.0}, "a"),
        (InvalidInput, "weights = 0 ", "league", {}, "a"),
        (InvalidInput, "by is empty", "league", {"based": 1.0}, " "),
    ],
)
def test_a_change_that_can_not_be_is_refused(league, error, sentence, mix, weights, by):
    league.client.register_players([bot("hidden", held_out=True)])
    with pytest.raises(error, match=sentence):
        league.client.set_mix(mix, weights, by)
    assert events(league, "mix_changed") == []


def test_a_mix_may_name_a_rival(league):
    league.client.add_rival(rival("friend"), "anna")
    league.client.set_mix("other", {"friend": 1.0, "based": 0.0}, "anna")
    assert opponents(league, league.open(), mix="other")[0] == {"friend"}


def test_only_operators_change_a_mix(tmp_path: Path) -> None:
    file = TokenFile(tmp_path)
    file.ensure()
    token = Credentials(token=file.add(AccessRole.WORKER, "student"))
    with small_league(tmp_path, security=SecuritySettings(tokens=True)) as league:
        with (
            MatchmakerClient(league.server.address, credentials=token) as client,
            pytest.raises(Forbidden, match="SetMix needs operator"),
        ):
            client.set_mix("league", {"based": 1.0}, "student")
        league.client.set_mix("league", {"based": 1.0}, "anna")


@pytest.mark.long
def test_a_change_is_there_after_kill_9_until_the_settings_change(
    tmp_path: Path,
) -> None:
    db, config = tmp_path / "league.db", tmp_path / "mixes.toml"
    config.write_text("[matchmaker.mixes.league]\nrandom = 1.0\n", encoding="utf-8")
    with served(db, "--config", str(config)) as (process, client):
        client.register_players([bot("random"), bot("based"), live()])
        change = client.set_mix("league", {"based": 1.0, "random": 0.0}, "anna")
        process.kill()
        process.wait()
    with config.open("a", encoding="utf-8") as file:
        file.write("[matchmaker.mixes.other]\nbased = 3.0\n")
    with served(db, "--config", str(config)) as (_, client):
        learner = client.open_incarnation("learner-main", "main").number
        client.heartbeat(learner, 1, 1, "league")
        matches = client.acquire_matches(learner, 20, "league")
        assert {match.opponent.name for match in matches} == {"based"}
        shares = client.status().shares
        assert [(share.category, share.matches_since) for share in shares] == [("based", 20)]
    with served(db, "--read-only") as (_, client):
        assert client.status().changes == (change,)
        assert client.status().shares == shares
        with pytest.raises(Refused, match="only reads"):
            client.set_mix("league", {"based": 1.0}, "anna")
    config.write_text("[matchmaker.mixes.league]\nrandom = 3.0\n", encoding="utf-8")
    with served(db, "--config", str(config)) as (_, client):
        assert client.status().changes == ()
        matches = client.acquire_matches(learner, 20, "league")
        assert {match.opponent.name for match in matches} == {"random"}
    assert fsck(db)[0] == []
    with sqlite3.connect(db) as log:
        hashes = {row[0] for row in log.execute("SELECT policy_hash FROM draws")}
        assert hashes <= {row[0] for row in log.execute("SELECT hash FROM policies")}


def said(capsys, *words):
    code = main([*words])
    told = capsys.readouterr()
    return code, told.out, told.err


def test_commands_change_a_mix_and_name_the_change(league, tmp_path, capsys):
    learner, at = league.open(), ["--address", league.server.address]
    league.client.heartbeat(learner, 1, 10, "league")
    opponents(league, learner, 20)
    code, out, err = said(capsys, "mix", "set", "league.based=3", "league.random=0", *at)
    assert (code, out) == (0, "")
    assert re.search("^mix 'league' has based = 3, random = 0 ", err)
    _, matches = opponents(league, learner, 20)
    _, out, _ = said(capsys, "match", matches[0].match_id, *at)
    assert re.search("^why\t.*@.* had changed this mix at ", out, re.MULTILINE)
    _, out, _ = said(capsys, "status", *at)
    assert re.search("^mix\tleague: .*@.* set based = 3, random = 0 at ", out, re.MULTILINE)
    heads, *rows = (line.split("\t") for line in out.split("\n\n")[-1].splitlines())
    assert heads[-2:] == ["since_change", "matches_since"]
    assert sum(int(row[-1]) for row in rows) == 20
    code, out, _ = said(capsys, "mix", "--run-dir", str(tmp_path))
    assert code == 0
    changed = out.split("\n\n")[1].splitlines()
    assert re.search("^changed\tleague: .*@.* set based = 3, random = 0 at .*, event ", changed[0])
    assert changed[2].split("\t")[1] == "20"
    _, out, _ = said(capsys, "mix", str(tmp_path), "--json")
    (change,) = json.loads(out)["changes"]
    assert (change["mix"], change["weights"]) == ("league", {"based": 3.0, "random": 0.0})
    assert change["part"]["kinds"]["bots"]["matches"] == 20


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["league"], "'league' is no NAME.OPPONENT=WEIGHT"),
        (["league.based"], "'league.based' is no "),
        (["league.based=much"], "'league.based=much' is no "),
        (["league.=1"], "'league.=1' is no "),
        (["league.based=-1"], "league.based = -1 is no weight"),
        (["leage.based=1"], "there is no mix 'leage'"),
    ],
)
def test_a_wrong_word_is_refused(league, words, sentence, capsys):
    code, _, err = said(capsys, "mix", "set", *words, "--address", league.server.address)
    assert code == 2
    assert sentence in err
    assert len(err.splitlines()) == 1


def test_a_command_changes_several_mixes(league, capsys):
    words = ["league.based=1", "other.based=3", "league.random=0"]
    code, _, err = said(capsys, "mix", "set", *words, "--address", league.server.address)
    assert code == 0
    assert ["league" in line for line in err.splitlines()] == [True, False]
    changes = {change.mix: change.weights for change in league.client.status().changes}
    assert changes == {"league": {"based": 1.0, "random": 0.0}, "other": {"based": 3.0}}


def test_a_pause_reaches_learners_and_keeps_their_leases(league):
    learner, client = league.open(), league.client
    evaluator = client.open_incarnation("evaluator-0").number
    client.acquire_matches(learner, 3, "league")
    pairing = Pairing(player="main@1000", opponent="based", pairs=1, book=Book.EVAL, seed=1)
    client.acquire_pairings(evaluator, [pairing])
    assert not client.heartbeat(learner, 1).paused
    pause = client.pause_learners("anna@desk")
    assert (pause.by, client.status().pause) == ("anna@desk", pause)
    assert client.heartbeat(learner, 1).paused
    assert not client.heartbeat(evaluator, 1).paused
    for _ in range(100):  # 8 hours, longer than any lease lasts with progress
        league.clock.advance(limits.LEASE_SECONDS - 1.0)
        assert client.heartbeat(learner, 1, activity=PAUSED).paused
        league.server.sweep()
    with league.server.store.read() as reader:
        assert len(reader.open_assignments(learner)) == 3
        assert reader.open_assignments(evaluator) == [], "only learners are paused"
    with pytest.raises(InvalidInput, match="anna@desk has paused"):
        client.pause_learners("bert@desk")
    assert client.pause_learners("bert@desk", resume=True) == pause
    assert client.status().pause is None
    assert not client.heartbeat(learner, 1).paused
    with pytest.raises(InvalidInput, match="not paused"):
        client.pause_learners("bert@desk", resume=True)
    league.clock.advance(limits.LEASE_SECONDS + 1.0)
    assert league.server.sweep() == 3
    told = [event.text for event in events(league, "learners_paused", "learners_resumed")]
    assert [text.split()[0] for text in told] == ["anna@desk", "bert@desk"]


@pytest.mark.long
def test_a_pause_is_there_after_kill_9_of_the_matchmaker(tmp_path: Path) -> None:
    db = tmp_path / "league.db"
    with served(db) as (process, client):
        client.register_players([live()])
        learner = client.open_incarnation("learner-main", "main").number
        pause = client.pause_learners("anna")
        process.kill()
        process.wait()
    with served(db) as (process, client):
        assert client.heartbeat(learner, 1).paused
        assert client.status().pause == pause
        client.pause_learners("anna", resume=True)
        process.kill()
        process.wait()
    with served(db) as (_, client):
        assert not client.heartbeat(learner, 1).paused


def test_commands_pause_and_resume(league, capsys):
    at = ["--address", league.server.address]
    code, _, err = said(capsys, "pause", *at)
    assert (code, "bin/league resume" in err) == (0, True)
    _, out, _ = said(capsys, "status", *at)
    assert re.search("^paused\tby .*@.* at .*bin/league resume", out, re.MULTILINE)
    assert said(capsys, "pause", *at)[0] == 2
    code, _, err = said(capsys, "resume", *at)
    assert (code, "had paused them at" in err) == (0, True)
    assert "paused" not in said(capsys, "status", *at)[1]
    code, _, err = said(capsys, "resume", *at)
    assert (code, len(err.splitlines())) == (2, 1)

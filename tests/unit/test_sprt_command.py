"""``bin/league sprt``: figures, files, certificates, and bad input."""

from __future__ import annotations

import json

import pytest

from league.cli.main import main
from league.stats.gates import BernoulliTest, Gate, Result, Subject, certify

FISHTEST = ["--pentanomial", "10789,19328,33806,19402,10543", "--elo0", "-3", "--elo1", "1"]
SHARES = ["--p0", "0.55", "--p1", "0.65"]
ELO = ["--elo0", "0", "--elo1", "5"]


@pytest.fixture
def sprt(capsys):
    """Runs the command; returns its status, its lines by name and its notes on stderr."""

    def call(*words):
        status = main(["sprt", *map(str, words)])
        said = capsys.readouterr()
        return status, dict(line.split("\t", 1) for line in said.out.splitlines()), said.err

    return call


def test_known_pentanomials(sprt):
    status, lines, said = sprt(*FISHTEST)
    assert (status, said) == (0, "")
    assert lines["verdict"].startswith("continue")
    assert lines["llr"] == "2.131 (rejects at -2.944, accepts at 2.944)"
    assert lines["counted"] == "93,868 pairs, 187,736 matches; 49.89% of the points"


def test_counts_of_matches_by_share_and_by_elo(sprt):
    _, lines, note = sprt(*SHARES, "--wins", 50, "--losses", 21)
    assert lines["verdict"].startswith("accept")
    assert lines["counted"] == "71 matches, 50 won, 0 drawn, 21 lost; 70.42% of the points"
    beyond = ("--wins", 140, "--draws", 20, "--losses", 40, "--elo0", 0, "--elo1", 35)
    _, lines, _ = sprt(*beyond)
    assert lines["llr"].startswith("10.099 ")
    assert note.count("\n") == 1


def test_without_results_it_forecasts(sprt):
    _, lines, _ = sprt(*SHARES, "--alpha", 0.1, "--truth", 0.8)
    assert lines["bounds"] == "rejects at -2.890, accepts at 2.251"
    truths = [name.removeprefix("if truly ") for name in lines if name.startswith("if truly")]
    assert truths == ["0.55", "0.6", "0.65", "0.8"]
    assert lines["if truly 0.8"].startswith("accepts 100.0%, after ")


def test_json_holds_all_digits(capsys):
    assert main(["sprt", *FISHTEST, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["llr"] == pytest.approx(2.131067811794, abs=1e-9)
    assert said["counts"] == [10789, 19328, 33806, 19402, 10543]
    assert (said["verdict"], said["unit"]) == ("continue", "pair")
    assert said["elo"]["low"] < said["elo"]["value"] < said["elo"]["high"]
    assert [one["truth"] for one in said["expected"]] == [-3, -1, 1]
    assert main(["sprt", *ELO, "--pentanomial", "0,0,0,0,9", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["elo"]["high"] is None


def test_a_certificate_is_checked(sprt, tmp_path):
    gate = Gate(test=BernoulliTest(p0=0.55, p1=0.65)).take(Result(n, 1.0) for n in range(40))
    names = {"candidate": "main@9", "candidate_digest": "c" * 64, "opponent": "nash"}
    subject = Subject(game="kuhn", book="eval", opponent_digest="", **names)
    text = certify(gate, subject, tuple(range(gate.results))).to_json()
    file = tmp_path / "certificate.json"
    file.write_text(text)
    status, lines, _ = sprt("--certificate", file, "--truth", 0.9)
    assert (status, lines["candidate"], lines["opponent"]) == (0, "main@9", "nash")
    assert lines["opponent_digest"] == "-"
    assert lines["verdict"].startswith("accept")
    assert "if truly 0.9" in lines
    file.write_text(text.replace('"llr": ', '"llr": 1'))
    status, lines, said = sprt("--certificate", file)
    assert (status, lines) == (4, {})
    assert str(file) in said


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ([], "--p0"),
        (["--p0", "0.5"], "--p1"),
        (["--elo1", "5"], "--elo0"),
        ([*SHARES, *ELO], "--elo0"),
        ([*SHARES, "--pentanomial", "1,2,3,4,5"], "--pentanomial"),
        ([*SHARES, "--wins", "1", "--pentanomial", "1,2,3,4,5"], "--pentanomial"),
        ([*SHARES, "--wins", "-1"], "-1"),
        ([*SHARES, "--wins", "some"], "'some'"),
        ([*SHARES, "--alpha", "2"], "alpha 2"),
        ([*SHARES, "--truth", "2"], "2 "),
        ([*SHARES, "--certificate", "x"], "--p0, --p1"),
        (["--certificate", "nowhere.json"], "nowhere.json"),
        (["--certificate", "binary.txt"], "binary.txt"),
        ([*ELO, "--pentanomial", "1,2,3"], "3 counts"),
        ([*ELO, "--pentanomial", "1,2,3,4,e"], "1,2,3,4,e"),
        (["--elo0", "0", "--elo1", "5000"], "5000"),
    ],
)
def test_bad_input_gets_one_sentence(words, value, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "binary.txt").write_bytes(b"\xff\xfe\x00")
    assert main(["sprt", *words]) in (1, 2)
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert value in said.err

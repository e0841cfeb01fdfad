"""``bin/league sprt``: what it prints, what it reads, and what it says to input that makes no
sense.
"""

from __future__ import annotations

import io
import json
import sys

import pytest

from league.cli.main import main
from league.stats.gates import BernoulliTest, Gate, Result, Subject, certify

FISHTEST = ["--pentanomial", "10789,19328,33806,19402,10543", "--elo0", "-3", "--elo1", "1"]
SHARES = ["--p0", "0.55", "--p1", "0.65"]


@pytest.fixture
def sprt(capsys):
    """Runs the command: its status, lines by name, and what it says to the person."""

    def call(*words):
        status = main(["sprt", *map(str, words)])
        said = capsys.readouterr()
        return status, dict(line.split("\t", 1) for line in said.out.splitlines()), said.err

    return call


def test_known_pentanomials(sprt):
    status, lines, said = sprt(*FISHTEST)
    assert (status, said) == (0, "")
    assert lines["test"] == "logistic Elo -3 against 1, alpha 0.05, beta 0.05"
    assert lines["verdict"] == "continue: not decided yet"
    assert lines["llr"] == "2.131 (rejects at -2.944, accepts at 2.944)"
    assert lines["counted"] == "93,868 pairs, 187,736 matches; 49.89% of the points"
    narrow = ("--pentanomial", "39,2226,31451,2412,40", "--elo0", 0.764, "--elo1", 3.439)
    _, lines, _ = sprt(*narrow, "--model", "normalised")
    assert lines["llr"].startswith("2.163 ")
    assert lines["elo"] == "0.87 (95 % interval 0.17 to 1.54)"


def test_counts_of_matches_by_share_and_by_elo(sprt):
    _, lines, said = sprt(*SHARES, "--wins", 50, "--losses", 21)
    assert lines["verdict"] == "accept: as strong as the alternative"
    assert lines["counted"] == "71 matches, 50 won, 0 drawn, 21 lost; 70.42% of the points"
    assert "no rating" in said
    assert "beyond its bound" not in said
    _, lines, said = sprt("--wins", 140, "--draws", 20, "--losses", 40, "--elo0", 0, "--elo1", 35)
    assert lines["llr"].startswith("10.099 ")
    assert (
        "beyond its bound by far: a test that looks after every match would have ended after about"
        in said
    )


def test_without_results_it_foresees(sprt):
    _, lines, _ = sprt(*SHARES, "--alpha", 0.1, "--truth", 0.8)
    assert lines["bounds"] == "rejects at -2.890, accepts at 2.251"
    assert [name for name in lines if name.startswith("if truly")] == [
        "if truly 0.55",
        "if truly 0.6",
        "if truly 0.65",
        "if truly 0.8",
    ]
    assert lines["if truly 0.8"].startswith("accepts 100.0%, after ")


def test_json_holds_all_digits(capsys):
    assert main(["sprt", *FISHTEST, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["llr"] == pytest.approx(2.131067811794, abs=1e-9)
    assert said["counts"] == [10789, 19328, 33806, 19402, 10543]
    assert (said["verdict"], said["unit"]) == ("continue", "pair")
    assert said["elo"]["low"] < said["elo"]["value"] < said["elo"]["high"]
    assert [one["truth"] for one in said["expected"]] == [-3, -1, 1]
    assert (
        main(["sprt", "--elo0", "0", "--elo1", "35", "--pentanomial", "0,0,0,0,9", "--json"]) == 0
    )
    assert json.loads(capsys.readouterr().out)["elo"]["high"] is None


def test_a_file_of_matches_is_counted_up_to_the_decision(sprt, tmp_path, monkeypatch):
    played = tmp_path / "played.txt"
    played.write_text("w W 1 l\n" * 15 + "0.5 ½ 1/2 d 0 L")
    _, lines, said = sprt(*SHARES, "--results", played)
    decided = next(n for n in range(60) if llr_of("wwwl" * 15, n) >= 2.9444)
    assert lines["counted"].startswith(f"{decided} matches, ")
    assert f"decided after {decided} matches: the other {66 - decided} are not counted" in said
    monkeypatch.setattr(sys, "stdin", io.StringIO("w l w w d"))
    _, lines, said = sprt("--elo0", 0, "--elo1", 35, "--results", "-")
    assert lines["counted"] == "2 pairs, 4 matches; 75.00% of the points"
    assert "the last of 5 matches has no second of its pair" in said


def llr_of(played, number):
    won = played[:number].count("w")
    return BernoulliTest(p0=0.55, p1=0.65).llr((number - won, 0, won))


def certificate():
    test = BernoulliTest(p0=0.55, p1=0.65)
    gate = Gate(test=test).take(Result(place, 1.0) for place in range(40))
    subject = Subject(
        game="kuhn",
        book="eval",
        candidate="main@9",
        candidate_digest="c" * 64,
        opponent="nash",
        opponent_digest="",
    )
    return certify(gate, subject, tuple(range(gate.results)))


def test_a_certificate_is_checked(sprt, tmp_path):
    file = tmp_path / "certificate.json"
    file.write_text(certificate().to_json())
    status, lines, said = sprt("--certificate", file, "--truth", 0.9)
    assert status == 0
    assert (lines["candidate"], lines["opponent"], lines["opponent_digest"]) == (
        "main@9",
        "nash",
        "-",
    )
    assert lines["verdict"].startswith("accept")
    assert "if truly 0.9" in lines
    assert "no rating" in said
    file.write_text(certificate().to_json().replace('"llr": ', '"llr": 1'))
    status, lines, said = sprt("--certificate", file)
    assert (status, lines) == (4, {})
    assert "it was altered" in said
    assert str(file) in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "there is nothing to test"),
        (["--wins", "3"], "there is nothing to test"),
        (["--p0", "0.5"], "--p0 needs --p1"),
        (["--elo1", "5"], "--elo1 needs --elo0"),
        (["--p0", "0.5", "--elo1", "5"], "hypotheses were given twice"),
        ([*SHARES, "--elo0", "0", "--elo1", "5"], "hypotheses were given twice"),
        ([*SHARES, "--model", "normalised"], "--model is for --elo0 and --elo1"),
        ([*SHARES, "--pentanomial", "1,2,3,4,5"], "--pentanomial counts pairs"),
        ([*SHARES, "--wins", "1", "--pentanomial", "1,2,3,4,5"], "results were given twice"),
        ([*SHARES, "--wins", "1", "--certificate", "x"], "results were given twice"),
        ([*SHARES, "--wins", "-1"], "-1 is no count"),
        ([*SHARES, "--wins", "some"], "invalid int value: 'some'"),
        ([*SHARES, "--alpha", "2"], "alpha 2 is no error rate"),
        ([*SHARES, "--truth", "2"], "2 is no share of the points"),
        ([*SHARES, "--results", "nowhere.txt"], "nowhere.txt can't be read"),
        ([*SHARES, "--results", "."], "can't be read"),
        ([*SHARES, "--certificate", "x"], "a certificate holds its own hypotheses"),
        (["--p0", "0.7", "--p1", "0.6"], "p0 0.7 is not below p1 0.6"),
        (
            ["--elo0", "0", "--elo1", "5", "--pentanomial", "1,2,3"],
            "3 counts were given where 5 are wanted",
        ),
        (["--elo0", "0", "--elo1", "5", "--pentanomial", "1,2,3,4,e"], "is no list of counts"),
        (["--elo0", "0", "--elo1", "5", "--pentanomial", "1,2,3,4,-5"], "-5 is no count"),
        (["--elo0", "0", "--elo1", "5000"], "Elo 5000 can't be tested"),
        (["--elo0", "0", "--elo1", "5", "--truth", "1e9"], "Elo 1e+09 can't be tested"),
    ],
)
def test_bad_input_gets_one_sentence(words, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["sprt", *words]) in (1, 2)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert message in said.err


def test_a_word_that_is_no_result_is_named(capsys, tmp_path):
    played = tmp_path / "played.txt"
    played.write_text("w l won")
    assert main(["sprt", *SHARES, "--results", str(played)]) == 2
    assert "holds 'won': name each match w, d or l" in capsys.readouterr().err
    played.write_bytes(b"\xff\xfe\x00")
    assert main(["sprt", *SHARES, "--results", str(played)]) == 1
    assert "it is no text" in capsys.readouterr().err

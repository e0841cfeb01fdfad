"""``bin/league sprt``: figures, files, certificates, and bad input."""

from __future__ import annotations

import json

import pytest

from league.cli.main import main
from league.stats.gates import BernoulliTest, Gate, Result, Subject, certify

FISHTEST = ["--pentanomial", "10789,19328,33806,19402,10543", "--elo0", "-3", "--elo1", "1"]
ELO = ["--elo0", "0", "--elo1", "5"]


@pytest.fixture
def sprt(capsys):
    """Runs the command; returns its status, its lines by name and its notes on stderr."""

    def call(*words):
        status = main(["sprt", *map(str, words)])
        said = capsys.readouterr()
        return status, dict(line.split("\t", 1) for line in said.out.splitlines()), said.err

    return call


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

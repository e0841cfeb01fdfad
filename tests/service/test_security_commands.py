"""`bin/league tokens` and `certs`, and programs that find their own token, as a user meets them."""

from __future__ import annotations

import stat
import time
from pathlib import Path

import pytest
from small_league import small_league
from test_matchmaker_process import matchmaker, ready_port

from league.cli.main import main
from league.errors import Unauthenticated
from league.rpc.client import MatchmakerClient
from league.security.credentials import Credentials, of_run
from league.security.settings import SecuritySettings
from league.security.tokens import LOOK_SECONDS
from matchmaker.tools.fsck import fsck


def said(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    assert main([str(word) for word in words]) == 0
    return capsys.readouterr().out


def test_a_token_of_the_command_is_good_until_it_is_revoked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, own = tmp_path / "run", tmp_path / "dashboard.token"
    said(capsys, "tokens", "make", "--run-dir", run)
    printed = said(capsys, "tokens", "add", "worker", "gpu-7", "--run-dir", run)
    assert said(capsys, "tokens", "add", "read", "dashboard", "--run-dir", run, "--out", own) == ""
    assert stat.S_IMODE(own.stat().st_mode) == 0o600
    with small_league(run, security=SecuritySettings(tokens=True)) as league:
        to = ("--address", league.server.address)
        assert "rank" in said(capsys, "ratings", *to, "--token-file", own)
        assert main(["ratings", *to]) == 2
        assert "wants a token" in capsys.readouterr().err
        said(capsys, "tokens", "revoke", "gpu-7", "--run-dir", run)
        time.sleep(LOOK_SECONDS)
        shown = Credentials(token=printed.strip())
        with (
            MatchmakerClient(league.server.address, credentials=shown) as client,
            pytest.raises(Unauthenticated),
        ):
            client.status()


def test_a_program_makes_its_tokens_and_its_helpers_find_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The real processes: a matchmaker with tokens and TLS, and fsck asking it by the run's own
    token.
    """
    said(capsys, "certs", tmp_path / "certs")
    config = tmp_path / "config.toml"
    config.write_text(f"[security]\ntokens = true\ntls = '{tmp_path / 'certs'}'\n")
    with matchmaker(tmp_path / "league.db", "--config", str(config)) as process:
        address = f"127.0.0.1:{ready_port(process)}"
        shown = of_run(tmp_path, "operator", tls=tmp_path / "certs", environment={})
        with MatchmakerClient(address, credentials=shown) as client:
            assert client.status().game == "brawl"
        reader = of_run(tmp_path, "read", tls=tmp_path / "certs", environment={})
        assert fsck(tmp_path / "league.db", address, reader)[0] == []
        process.terminate()
        assert process.wait() == 0
        log = process.stderr.read()
    assert all(role in log for role in ("read", "worker", "operator"))
    assert "kumite-" not in log  # no token in a log

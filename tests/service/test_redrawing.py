"""What was drawn, and by which weights, follows from the log: for a replay, and for `fsck`."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from exploiter_league import MIXES, ExploiterLeague, exploiter_league, loses_always, wins_always
from small_league import played, snapshot

from league.cli.main import main
from league.players import Book, Pairing
from matchmaker.sampling.draw import Stream, draw_table_of, draws
from matchmaker.store.converting import unpacked
from matchmaker.store.sqlite import SqliteStore
from matchmaker.tools import redrawing
from matchmaker.tools.fsck import fsck

WRONG = "opponents are drawn by weights that the log gives, but not "


def meet(league: ExploiterLeague, main: str, other: str, pairs: int, outcome: float) -> None:
    """Clean matches of which `main` earns so much each."""
    wanted = Pairing(player=main, opponent=other, pairs=pairs, book=Book.EVAL, seed=5)
    matches = league.client.acquire_pairings(league.evaluator, [wanted])
    mine = (outcome if match.seats[0].name == main else 1.0 - outcome for match in matches)
    results = [played(match, score) for match, score in zip(matches, mine, strict=True)]
    league.client.report_results(league.evaluator, results)


def lived(league: ExploiterLeague) -> None:
    """Draws of the main and of an exploiter while gates are opened, passed and failed, and one
    is patched.
    """
    main_worker = league.small.open()
    first = league.begin(1)

    def both() -> None:
        league.small.play(main_worker, 12)
        hunter = league.learn(first)
        league.client.report_results(
            hunter,
            [played(match, 1.0) for match in league.client.acquire_matches(hunter, 6, "victims")],
        )

    both()
    meet(league, "main@2000", "based", 6, 0.0)
    gate = league.freeze(first, 500)
    both()
    accepted = league.to_the_end(gate, wins_always).candidate
    both()
    league.to_the_end(league.freeze(first, 900), loses_always)
    league.client.register_players([snapshot(3000, creator="learner-main")])
    both()
    meet(league, "main@3000", accepted, 10, 1.0)
    assert league.client.review_exploiters(league.evaluator, "main@3000") == ([accepted], [])
    league.freeze(first, 1300)  # stays open
    both()
    league.client.acquire_matches(main_worker, 20, "league")


BUSY: dict[str, object] = {"max_saved": 2, "adaptive": 4.0}
"""The oldest main retires, and the bot that it lost to is met more."""


@pytest.fixture(scope="module")
def exploited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exploited")
    mixes = MIXES | {"league": {"snapshots": 6.0, "exploiters": 2.0, "based": 1.0, "random": 1.0}}
    with exploiter_league(folder, **(BUSY | {"mixes": mixes})) as league:
        lived(league)
    return folder


def policy(folder: Path, **changes: str) -> Path:
    file = folder / "policy.toml"
    mixes = (
        "mixes = {league={snapshots=6.0,exploiters=2.0,based=1.0,random=1.0},victims={victims=1.0}}\n"
        "adaptive = 4.0\nmax_saved = 2\n"
    )
    others = "".join(f"{key} = {value}\n" for key, value in changes.items())
    file.write_text(f"[matchmaker]\n{mixes}{others}")
    return file


def replay(run: Path, file: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    assert main(["simulate", "--replay", str(run), "--policy", str(file), "--json"]) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def test_a_league_with_exploiters_replayed_under_its_own_policy_is_itself(
    exploited: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    same = replay(exploited, policy(tmp_path), capsys)
    assert same["distance"] == pytest.approx(0.0, abs=1e-12)
    drawn = {row["name"] for row in same["categories"]}  # type: ignore[attr-defined]
    assert drawn == {"snapshots", "exploiters", "based", "random", "victims"}


def test_the_log_gives_the_weights_of_all_that_was_drawn(exploited: Path) -> None:
    assert fsck(exploited / "league.db")[0] == []
    store = SqliteStore(exploited / "league.db", read_only=True)
    with store.read() as reader:
        assert len(reader.select(redrawing._FIRST_MATCHES)) >= 10
        bodies = [
            json.loads(unpacked(row[0])) for row in reader.select("SELECT body_json FROM draws")
        ]
    store.close()
    drawn = [body for body in bodies if "candidates" in body]
    assert any(len(body["candidates"].get("exploiters", ())) for body in drawn)
    assert any("victims" in body["candidates"] for body in drawn)


def tampered(folder: Path, change: Callable[[dict[str, object]], None]) -> str:
    """Alters what the newest draw says, and its matches so that its seed draws them; its first
    match.
    """
    with sqlite3.connect(folder / "league.db") as connection:
        number, text, stream = connection.execute(
            "SELECT number, body_json, stream FROM draws ORDER BY number DESC LIMIT 1"
        ).fetchone()
        body = json.loads(unpacked(text))
        change(body)
        table = draw_table_of(json.dumps(body))
        rows = connection.execute(
            "SELECT ordinal, match_id, learner_seat FROM assignments WHERE draw = ? ORDER BY ordinal",
            (number,),
        ).fetchall()
        connection.execute("DROP TRIGGER draws_never_update")
        connection.execute(
            "UPDATE draws SET body_json = ? WHERE number = ?", (json.dumps(body), number)
        )
        again = draws(table.shares, table.within, Stream(stream), [row[0] for row in rows])
        for (ordinal, _, seat), drawn in zip(rows, again, strict=True):
            connection.execute(
                f"UPDATE assignments SET category = ?, probability = ?, seat{1 - seat} = ? WHERE ordinal = ?",
                (drawn.category, drawn.probability, drawn.opponent, ordinal),
            )
    return str(rows[0][1])


def heavier(body: dict[str, object]) -> None:
    """One snapshot is drawn a hundredth more often than its weight says."""
    body["candidates"]["snapshots"][0][1] *= 1.01  # type: ignore[index]


def patched_in_full(body: dict[str, object]) -> None:
    """The patched exploiter has the whole weight of its category."""
    body["shares"] = {"snapshots": 0.6, "exploiters": 0.2, "based": 0.1, "random": 0.1}


def without_the_victim(body: dict[str, object]) -> None:
    body["candidates"]["snapshots"].pop()  # type: ignore[index]


@pytest.mark.parametrize("change", [heavier, patched_in_full, without_the_victim])
def test_weights_that_were_tampered_with_are_found_though_the_matches_follow_from_them(
    exploited: Path, tmp_path: Path, change: Callable[[dict[str, object]], None]
) -> None:
    copy = tmp_path / "league.db"
    copy.write_bytes((exploited / "league.db").read_bytes())
    match_id = tampered(tmp_path, change)
    assert fsck(copy)[0] == [WRONG + match_id]

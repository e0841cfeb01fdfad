"""A league with an object store: machines that share no folder, only the store and an address."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from evaluator_league import register_bots_and_live, register_snapshot
from object_store import SECRET, ObjectStore, object_store
from remote_league import weights
from small_league import live, snapshot
from waiting import wait_for

from evaluator.clean.uploads import ReplayUploads
from league.cli.main import main
from league.contest.joining import join
from league.errors import ConfigError, NotFound
from league.players import Player, PlayerKind
from league.rpc.blobs import RemoteBlobs
from league.rpc.client import MatchmakerClient
from league.runs.blobs import BlobFolder, BlobKind
from league.runs.folder import write_config
from league.runs.store import Store, blob_name, store_of
from league.security.credentials import Credentials
from league.settings.base import Sections, resolve
from learner.train.checkpoint import FORMAT, CheckpointFolder
from learner.train.stored_checkpoints import StoredCheckpoints
from matchmaker.main import MatchmakerServer
from matchmaker.settings import MatchmakerSettings

BATCH = (
    *("learner.matches=4", "learner.n_steps=16", "learner.batch_size=64", "learner.n_epochs=1"),
    *("agent.size='tiny'", "agent.encoder='none'", "game.match_seconds=2", "game.frame_skip=4"),
    *("curriculum.stages=[{name='league', mix='league'}]", "matchmaker.matches_per_draw=1"),
    *("matchmaker.mixes={league={snapshots=1.0}}", "evaluator.matches_per_snapshot=6"),
)


@pytest.fixture(scope="module")
def s3() -> Iterator[ObjectStore]:
    with object_store() as running:
        yield running


@pytest.fixture
def sections(s3: ObjectStore) -> Sections:
    return resolve("smoke", None, [*BATCH, f"cluster.store={s3.address()}"], environment={})


@pytest.fixture
def store(sections: Sections) -> Store:
    return Store(sections["cluster"]["store"])


@pytest.fixture
def server(tmp_path: Path, sections: Sections, store: Store) -> Iterator[MatchmakerServer]:
    """A league with a store, in a folder of its own."""
    (tmp_path / "league").mkdir()
    write_config(tmp_path / "league" / "config.toml", sections)
    with MatchmakerServer(
        tmp_path / "league" / "league.db",
        settings=MatchmakerSettings.of(sections),
        sections=sections,
        store=store,
    ) as running:
        yield running


@pytest.fixture
def client(server: MatchmakerServer) -> Iterator[MatchmakerClient]:
    with MatchmakerClient(server.address) as caller:
        yield caller


@pytest.fixture
def elsewhere(tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Another machine, which names the same store."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("KUMITE_CLUSTER__STORE", store.address)
    return folder


@pytest.fixture
def start(elsewhere: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []

    def begin(*words: str) -> subprocess.Popen[bytes]:
        with (elsewhere / f"{words[0]}.log").open("ab") as log:
            started.append(subprocess.Popen([sys.executable, "-m", *words], stdout=log, stderr=log))
        return started[-1]

    yield begin
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait()


def frozen(client: MatchmakerClient, **changes: object) -> Player:
    player = snapshot(1000, **changes)
    client.register_players([live(), player])
    return player


# --- the run's folder and the store


def test_the_run_s_folder_gets_the_weights_of_the_store(
    server: MatchmakerServer, client: MatchmakerClient, store: Store, tmp_path: Path
) -> None:
    digest = store.put_blob(b"weights", BlobKind.WEIGHTS)
    frozen(client, digest=digest)
    wait_for(lambda: BlobFolder(tmp_path / "league" / "blobs").has(digest))


def test_the_store_gets_the_weights_of_the_run_s_folder(
    server: MatchmakerServer, client: MatchmakerClient, store: Store
) -> None:
    digest = client.put_blob(weights())  # by a machine that knows no store
    frozen(client, digest=digest)
    wait_for(lambda: store.has(blob_name(digest, BlobKind.WEIGHTS)))


def test_a_machine_without_the_store_gets_its_weights_from_the_matchmaker(
    server: MatchmakerServer, client: MatchmakerClient, store: Store, tmp_path: Path
) -> None:
    digest = store.put_blob(b"weights", BlobKind.WEIGHTS)
    assert client.get_blob(digest) == b"weights", "nobody has registered it yet"
    with pytest.raises(NotFound):
        client.get_blob("0" * 64)


def test_replays_come_and_go_with_the_store(
    server: MatchmakerServer, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("matchmaker.api.mirror.REPLAY_SECONDS", 0.0)
    folder = tmp_path / "league" / "replays"
    store.create("replays/ab12.replay", b"a match")
    store.create("replays/deep/er.replay", b"not a name of ours")
    store.create("replays/ab12.exe", b"not a name of ours")
    wait_for(lambda: (folder / "ab12.replay").is_file())
    assert (folder / "ab12.replay").read_bytes() == b"a match"
    store.delete("replays/ab12.replay")
    wait_for(lambda: list(folder.iterdir()) == [])


def test_a_replay_that_was_removed_here_stays_away_after_a_restart(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("matchmaker.api.mirror.REPLAY_SECONDS", 0.0)
    folder, db = tmp_path / "replays", tmp_path / "league.db"
    with MatchmakerServer(db, store=store):
        store.create("replays/old.replay", b"a match")
        wait_for(lambda: (folder / "old.replay").is_file())
        store.create("replays/kept.replay", b"a match")
        wait_for(lambda: (folder / "kept.replay").is_file())
    (folder / "old.replay").unlink()
    store.create("replays/zz_new.replay", b"a match")
    with MatchmakerServer(db, store=store):
        wait_for(lambda: (folder / "zz_new.replay").is_file())
    assert {path.name for path in folder.iterdir()} == {"kept.replay", "zz_new.replay"}


def test_replays_come_although_the_list_of_stored_replays_is_damaged(
    store: Store, tmp_path: Path
) -> None:
    (tmp_path / "stored_replays.txt").write_bytes(b"\xff\xfe")
    with MatchmakerServer(tmp_path / "league.db", store=store):
        store.create("replays/ab12.replay", b"a match")
        wait_for(lambda: (tmp_path / "replays" / "ab12.replay").is_file())


def test_a_replay_that_is_too_large_or_gone_costs_no_other(
    server: MatchmakerServer, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("matchmaker.api.mirror.REPLAY_SECONDS", 0.0)
    monkeypatch.setattr("matchmaker.api.mirror.MOST_REPLAY_BYTES", 10)
    names, folder = store.names, tmp_path / "league" / "replays"
    with monkeypatch.context() as patch:  # listed, and removed before it is read
        patch.setattr(store, "names", lambda folder: [*names(folder), "replays/a.replay"])
        store.create("replays/b.replay", b"eleven bytes")
        store.create("replays/c.replay", b"a match")
        wait_for(lambda: (folder / "c.replay").is_file())
    store.create("replays/d.replay", b"another")
    wait_for(lambda: (folder / "d.replay").is_file())
    assert {path.name for path in folder.iterdir()} == {"c.replay", "d.replay"}


def test_an_evaluator_removes_only_the_replays_that_it_has_uploaded(
    store: Store, tmp_path: Path
) -> None:
    uploads = ReplayUploads(tmp_path, store)
    store.claim("a league")
    for name in ("theirs", "later"):
        store.create(f"replays/{name}.replay", b"a match")
        (tmp_path / f"{name}.replay").write_bytes(b"a match")  # as the matchmaker copies it
        (tmp_path / f"own-{name}.replay").write_bytes(b"a match")
        uploads.look()
    assert len(store.names("replays")) == 4
    for path in tmp_path.iterdir():
        path.unlink()
    uploads.look()
    assert store.names("replays") == ["replays/later.replay", "replays/theirs.replay"]


def test_an_outage_keeps_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("league.runs.store.AWAY_SECONDS", 0.0)
    with object_store() as own:
        store = Store(own.address())
        with (
            MatchmakerServer(tmp_path / "league.db", store=store) as server,
            MatchmakerClient(server.address) as client,
        ):
            blobs = RemoteBlobs(tmp_path / "cache", client, store=store)
            first = blobs.put(weights(1000, b"1"))
            own.stop()
            digest = blobs.put(weights(1000, b"2"))
            other = RemoteBlobs(tmp_path / "other", client, store=store)
            assert other.get(digest) == weights(1000, b"2"), "the matchmaker has it meanwhile"
            assert not other.has(first)
            frozen(client, digest=digest)
            own.start()
            wait_for(lambda: store.has(blob_name(digest, BlobKind.WEIGHTS)))
        own.stop()
        with MatchmakerServer(tmp_path / "league.db", store=store):
            pass  # a league that has its store starts without it


def test_a_second_league_does_not_get_the_store(
    server: MatchmakerServer, store: Store, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="another league"):
        MatchmakerServer(tmp_path / "second.db", store=store)


def test_a_branch_takes_another_store(
    server: MatchmakerServer, store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "league" / "run.json").write_text('{"format": 1, "preset": "smoke"}')
    words = ["branch", str(tmp_path / "league"), str(tmp_path / "new")]
    assert main(words) == 2
    assert store.address in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


# --- what a machine takes from a league


def test_a_league_does_not_choose_where_files_are_written_here(
    server: MatchmakerServer, client: MatchmakerClient, elsewhere: Path,
    store: Store, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.delenv("KUMITE_CLUSTER__STORE")
    assert store_of(join(server.address, Credentials())) is None
    word = f"cluster.store={store.address}"
    named = store_of(join(server.address, Credentials(), [word]))
    assert named is not None
    assert named.address == store.address
    with pytest.raises(ConfigError, match="s3://bucket/mine"):
        join(server.address, Credentials(), ["cluster.store=s3://bucket/mine"])


def test_a_folder_that_this_machine_does_not_see_is_named(tmp_path: Path) -> None:
    address = f"file://{tmp_path}/mounted"
    sections = resolve("smoke", None, [f"cluster.store={address}"], environment={})
    write_config(tmp_path / "config.toml", sections)
    with pytest.raises(ConfigError, match=str(tmp_path / "mounted")):
        store_of(tmp_path)
    assert not (tmp_path / "mounted").exists()
    Store(address, is_owner=True).claim("a league")
    assert store_of(tmp_path) is not None


@pytest.mark.parametrize(
    "address",
    [
        "s3://key:secret@bucket/x",
        "az://box/x?sig=secret",
        "https://host/secret",
        "s3://bucket/../x#secret",
        "secret",
    ],
)
def test_an_address_with_a_secret_or_of_another_kind_is_not_shown(address: str) -> None:
    with pytest.raises(ConfigError, match="store") as caught:
        resolve("smoke", None, [f"cluster.store={address}"], environment={})
    assert "secret" not in str(caught.value)


def test_without_obstore_a_sentence_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(ConfigError, match=r"pip install 'kumite\[cluster\]'"):
        Store("s3://bucket/league")


# --- workers of other machines


@pytest.mark.long
def test_a_learner_continues_on_another_machine_from_the_store(
    server: MatchmakerServer,
    client: MatchmakerClient,
    elsewhere: Path,
    start: Callable[..., subprocess.Popen[bytes]],
    store: Store,
) -> None:
    register_bots_and_live(client)
    league, log = elsewhere.parent / "league", elsewhere / "learner.log"
    register_snapshot(client, league, 1000)
    words = ("learner", "--matchmaker", server.address, "--cpu", "--name", "bobs")
    assert start(*words, "--steps", "128").wait() == 0, log.read_text()
    assert len(store.names("learner-bobs/checkpoints")) >= 1
    shutil.rmtree(elsewhere / "runs")  # the next start is on another node
    assert start(*words, "--steps", "256").wait() == 0, log.read_text()
    assert "continues from step 128" in log.read_text()
    made = [one for one in client.players(kinds=[PlayerKind.SNAPSHOT]) if one.step != 1000]
    assert [one.name for one in made] == ["bobs@128", "bobs@256"]
    assert all(store.has(blob_name(one.digest, BlobKind.WEIGHTS)) for one in made)
    wait_for(lambda: all(BlobFolder(league / "blobs").is_whole(one.digest) for one in made))

    evaluator = start("evaluator", *words[1:3], "--name", "evaluator-bob")
    wait_for(lambda: {"bobs@256"} <= {one.player.name for one in client.ratings()})
    wait_for(lambda: store.names("replays"))
    evaluator.terminate()
    assert evaluator.wait() == 0, (elsewhere / "evaluator.log").read_text()
    written = [path for path in elsewhere.parent.rglob("*") if path.is_file()]
    assert [path for path in written if SECRET.encode() in path.read_bytes()] == []


def test_a_run_that_is_given_a_store_brings_its_checkpoints(
    tmp_path: Path, sections: Sections, store: Store
) -> None:
    run, place = tmp_path / "begun", "learner-main/checkpoints"
    CheckpointFolder(run / place).write(7, {"steps": 7})
    with MatchmakerServer(run / "league.db", settings=MatchmakerSettings.of(sections), store=store):
        other = StoredCheckpoints(tmp_path / "other", store, place)
        assert other.read_newest() == {"format": FORMAT, "steps": 7}

"""Weights & Biases gets what TensorBoard gets: offline, without a network."""

import os
import socket
import sys
from pathlib import Path

import pytest

from league.runs.records import read_scalars
from learner import main

NO_NETWORK = "http://127.0.0.1:9"


@pytest.fixture
def learn(server, tmp_path, monkeypatch):
    """Trains a learner in this process, from which only its own machine can be reached."""
    connect = socket.socket.connect

    def loopback_only(own, address):
        if isinstance(address, tuple) and address[0] not in ("127.0.0.1", "::1", "localhost"):
            raise OSError(f"no network here: {address}")
        return connect(own, address)

    monkeypatch.setattr(socket.socket, "connect", loopback_only)
    monkeypatch.setattr(main, "stop_flag", lambda: lambda: False)  # the signals are pytest's
    for name in [name for name in os.environ if name.startswith("WANDB")]:
        monkeypatch.delenv(name)
    for name in ("HTTPS_PROXY", "HTTP_PROXY"):
        monkeypatch.setenv(name, NO_NETWORK)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    monkeypatch.setenv("HOME", str(tmp_path))
    words = ["--matchmaker", server.address, "--run-dir", str(tmp_path)]

    def learn(*flags):
        code = main.main([*words, "--preset", "smoke", "--cpu", *flags])
        if package := sys.modules.get("wandb"):
            package.teardown()  # as at the end of a process
        return code

    return learn


def logged(path: Path) -> tuple[str, list[dict[str, float]]]:
    """The run's id and the rows in a file of Weights & Biases."""
    # Every test worker imports this file, and the package takes seconds to import.
    from wandb.proto.wandb_internal_pb2 import Record
    from wandb.sdk.internal.datastore import DataStore

    store, run_id, rows = DataStore(), "", []
    store.open_for_scan(str(path))
    while (data := store.scan_data()) is not None:
        record = Record()
        record.ParseFromString(data)
        run_id = record.run.run_id or run_id
        if record.HasField("history"):
            items = record.history.item
            rows.append(
                {item.key or "/".join(item.nested_key): float(item.value_json) for item in items}
            )
    return run_id, rows


@pytest.mark.long
def test_offline_it_gets_all_that_tensorboard_gets_and_a_run_that_goes_on_stays_one(
    learn, tmp_path
):
    ids, steps = [], []
    for target in ("256", "768"):
        assert learn("--set", "learner.wandb=offline", "--steps", target) == 0
        newest = max(
            (tmp_path / "learner-main" / "wandb").glob("offline-run-*/*.wandb"),
            key=os.path.getmtime,
        )
        run_id, rows = logged(newest)
        ids.append(run_id)
        steps += [row["step"] for row in rows]
    assert steps == [256.0, 512.0, 768.0]
    assert ids[0] == ids[1] == (tmp_path / "learner-main" / "wandb" / "run_id").read_text().strip()
    scalars = read_scalars(tmp_path / "learner-main" / "tensorboard")
    assert {name for name in rows[-1] if not name.startswith("_")} - {"step"} <= scalars.keys()
    kinds = {"loss/policy", "gradient/encoder", "latent/norm", "attention/entropy"}
    assert kinds <= rows[-1].keys()
    assert rows[-1]["loss/policy"] == pytest.approx(scalars["loss/policy"].values[-1], rel=1e-5)


def test_without_the_package_a_sentence_names_the_extra_and_when_off_it_is_never_imported(
    learn, monkeypatch, capsys
):
    monkeypatch.setitem(sys.modules, "wandb", None)
    assert learn("--set", "learner.wandb=offline") == 2
    assert "wandb" in capsys.readouterr().err
    assert learn("--steps", "256") == 0

"""Weights & Biases gets what TensorBoard gets: offline, in a process that can't reach the
network.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from league.runs.records import read_scalars

NO_NETWORK = "http://127.0.0.1:9"
LOCKED_UP = """
import socket, sys
connect = socket.socket.connect
def loopback_only(self, address):
    if isinstance(address, tuple) and address[0] not in ("127.0.0.1", "::1", "localhost"):
        raise OSError(f"no network here: {address}")
    return connect(self, address)
socket.socket.connect = loopback_only
"""


def learn(address, run_dir, *flags, before=LOCKED_UP):
    code = f"{before}\nfrom learner.main import main\nsys.exit(main(sys.argv[1:]))"
    words = ["--matchmaker", address, "--run-dir", str(run_dir), "--preset", "smoke", "--cpu"]
    environment = {name: os.environ[name] for name in os.environ if not name.startswith("WANDB")}
    environment |= {"OMP_NUM_THREADS": "1", "HTTPS_PROXY": NO_NETWORK, "HTTP_PROXY": NO_NETWORK}
    return subprocess.run(
        [sys.executable, "-c", code, *words, *flags],
        env={**environment, "HOME": str(run_dir), "NO_PROXY": "127.0.0.1,localhost"},
        capture_output=True,
        text=True,
        check=False,
    )


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


def test_offline_it_gets_all_that_tensorboard_gets_and_a_run_that_goes_on_stays_one(
    server, tmp_path
):
    ids, steps = [], []
    for target in ("512", "1024"):
        done = learn(server.address, tmp_path, "--set", "learner.wandb=offline", "--steps", target)
        assert done.returncode == 0, done.stderr
        newest = max(
            (tmp_path / "learner-main" / "wandb").glob("offline-run-*/*.wandb"),
            key=os.path.getmtime,
        )
        run_id, rows = logged(newest)
        ids.append(run_id)
        steps += [row["step"] for row in rows]
    assert steps == [256.0, 512.0, 768.0, 1024.0]
    assert ids[0] == ids[1] == (tmp_path / "learner-main" / "wandb" / "run_id").read_text().strip()
    scalars = read_scalars(tmp_path / "learner-main" / "tensorboard")
    assert {name for name in rows[-1] if not name.startswith("_")} - {"step"} <= scalars.keys()
    kinds = {"loss/policy", "gradient/encoder", "latent/norm", "attention/entropy"}
    assert kinds <= rows[-1].keys()
    assert rows[-1]["loss/policy"] == pytest.approx(scalars["loss/policy"].values[-1], rel=1e-5)


def test_without_the_package_a_sentence_names_the_extra_and_when_off_it_is_never_imported(
    server, tmp_path
):
    absent = """
import sys
sys.modules["wandb"] = None
from learner.main import main
assert main([*sys.argv[1:], "--set", "learner.wandb=offline"]) == 2
"""
    done = learn(server.address, tmp_path, "--steps", "256", before=absent)
    assert "install the extra wandb" in done.stderr
    assert done.returncode == 0, done.stderr

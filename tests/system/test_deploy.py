"""The files of deploy/: manifests against KubeRay's schema, the Slurm script with stand-ins for
Slurm and Ray. Neither Kubernetes nor Slurm is here.
"""

from __future__ import annotations

import json
import lzma
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from waiting import wait_for

from league.settings.base import resolve

ROOT = Path(__file__).resolve().parents[2]
DEPLOY, SCRIPT = ROOT / "deploy", ROOT / "deploy" / "slurm" / "league.sh"
SCHEMA = json.loads(lzma.decompress((ROOT / "tests/data/kuberay/rayjob-spec.json.xz").read_bytes()))
SPECS = {"RayJob": SCHEMA, "RayCluster": SCHEMA["properties"]["rayClusterSpec"]}
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int}


def faults(value: Any, schema: Mapping[str, Any], at: str = "spec") -> Iterator[str]:
    """Yields what the API server would refuse or drop."""
    if schema.get("x-kubernetes-int-or-string"):
        if not isinstance(value, int | str):
            yield f"{at} is no quantity"
        return
    kind = TYPES.get(schema.get("type", ""), object)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        yield f"{at} is no {schema['type']}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{at} is none of {schema['enum']}"
    if isinstance(value, list):
        for number, entry in enumerate(value):
            yield from faults(entry, schema["items"], f"{at}[{number}]")
    if isinstance(value, dict):
        known, further = schema.get("properties", {}), schema.get("additionalProperties")
        yield from (
            f"{at} lacks {name}" for name in schema.get("required", ()) if name not in value
        )
        for name, entry in value.items():
            if name in known or further:
                yield from faults(entry, known.get(name, further), f"{at}.{name}")
            elif not schema.get("x-kubernetes-preserve-unknown-fields"):
                yield f"{at} has no field {name}"


def manifests() -> dict[str, Any]:
    found = {}
    for path in (DEPLOY / "kuberay").glob("*.yaml"):
        for document in yaml.safe_load_all(path.read_text()):
            if document["kind"] in SPECS:
                found[path.name] = document
    return found


@pytest.mark.parametrize("name", ["rayjob.yaml", "raycluster.yaml"])
def test_a_manifest_follows_the_schema_of_kuberay(name: str) -> None:
    document = manifests()[name]
    assert list(faults(document["spec"], SPECS[document["kind"]])) == []
    cluster = document["spec"].get("rayClusterSpec", document["spec"])
    assert cluster["authOptions"] == {"mode": "token"}
    label = {f"pool={group['labels']['pool']}" for group in cluster["workerGroupSpecs"]}
    assert label == {"pool=learners", "pool=evaluators"}


def test_a_wrong_field_is_found() -> None:
    spec = manifests()["rayjob.yaml"]["spec"]
    cluster = spec["rayClusterSpec"]
    cluster["headGroupSpec"]["template"]["spec"]["containers"][0]["imagee"] = "x"
    cluster["workerGroupSpecs"][0]["replicas"] = "2"
    del cluster["workerGroupSpecs"][1]["groupName"]
    assert list(faults(spec, SCHEMA)) == [
        "spec.rayClusterSpec.headGroupSpec.template.spec.containers[0] has no field imagee",
        "spec.rayClusterSpec.workerGroupSpecs[0].replicas is no integer",
        "spec.rayClusterSpec.workerGroupSpecs[1] lacks groupName",
    ]


def test_the_settings_of_the_manifests_can_be_used() -> None:
    sections = resolve(file=DEPLOY / "kuberay" / "league.toml", environment={})
    assert sections["cluster"]["store"].startswith("s3://")


def test_scripts_pass_their_linters() -> None:
    linter = shutil.which("shellcheck", path=str(Path(sys.executable).parent))
    for command in (["bash", "-n"], [linter] if linter else []):
        if command:
            subprocess.run([*command, str(SCRIPT)], check=True)


class Stage:
    """A folder with stand-ins for srun, scontrol, ray and start-league, which note their calls."""

    STANDS_IN = """#!/usr/bin/env bash
me="$(basename "$0")"
echo "$me $*" >>"$CALLS"
case "$me $*" in
    "srun "*" hostname "*) echo "10.0.0.7 fe80::1";;
    "srun "*) while [[ "$1" == --* ]]; do shift; done; exec "$@";;
    "scontrol "*) printf '%s\\n' node-1 node-2 node-3;;
    "ray start "*) exec sleep 600;;
    "ray status") [[ "$RAY_ADDRESS" == 10.0.0.7:* && -n "$RAY_AUTH_TOKEN" ]];;
    "start-league "*)
        trap 'echo interrupted >>"$CALLS"; sleep 0.2; exit 5' TERM
        for _ in {1..6000}; do sleep 0.1; done;;
esac
"""

    def __init__(self, folder: Path) -> None:
        self.calls, binaries = folder / "calls", folder / ".venv" / "bin"
        self.calls.touch()
        binaries.mkdir(parents=True)
        (folder / "bin").mkdir()
        for path in (*(binaries / name for name in ("srun", "scontrol", "ray")),
                     folder / "bin" / "start-league"):  # fmt: skip
            path.write_text(self.STANDS_IN)
            path.chmod(0o755)
        job = {"SLURM_JOB_ID": "4711", "SLURM_JOB_NODELIST": "node-[1-3]"}
        variables = {**os.environ, **job, "SLURM_SUBMIT_DIR": str(folder), "CALLS": str(self.calls)}
        words = ["bash", str(SCRIPT), "--preset", "smoke"]
        self.process = subprocess.Popen(words, env=variables, start_new_session=True)

    def called(self, start: str) -> list[str]:
        return [line for line in self.calls.read_text().splitlines() if line.startswith(start)]


def test_the_slurm_script_runs_a_league_on_all_nodes_and_ends_it_in_order(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    try:
        wait_for(lambda: stage.called("start-league"))
        wait_for(lambda: len(stage.called("ray start")) == 3)
        (league,) = stage.called("start-league")
        assert "--engine ray" in league
        assert league.endswith("--preset smoke")
        heads = [call for call in stage.called("srun") if "--head" in call]
        assert [call for call in heads if "--nodelist=node-1 " in call] == heads
        joined = [call for call in stage.called("srun") if "--address=10.0.0.7:24711" in call]
        assert len(joined) == 2
        assert not any("TOKEN" in line for line in stage.calls.read_text().splitlines())
        os.kill(stage.process.pid, signal.SIGTERM)
        assert stage.process.wait() == 5, "the league's own status, after its last checkpoint"
        assert stage.called("interrupted")
    finally:
        if stage.process.poll() is None:
            os.killpg(stage.process.pid, signal.SIGKILL)

"""`bin/league doctor` on every shipped preset: no failure, and no warning but those explained
here.
"""

from __future__ import annotations

import json

import pytest

from league.cli.main import main
from league.settings.presets import preset_names

SPARSE = "the guide's sparse rewards at every frame: one decision in 181 pays, gamma reaches 100"
EXPLAINED = {"seed": {"7": SPARSE}, "fast": {"7": SPARSE}, "stable": {"7": SPARSE}}
"""By preset, reasons that warn, and why that is no fault of the doctor."""


@pytest.mark.slow  # test_doctor.py examines `smoke` in every run
@pytest.mark.timeout(900)
@pytest.mark.parametrize("preset", preset_names())
def test_a_shipped_preset_is_healthy(preset, tmp_path, capsys):
    out = tmp_path / "findings.json"
    # laptop is meant where none is named
    named = [] if preset == "laptop" else ["--preset", preset]
    status = main(["doctor", *named, "--json", str(out)])
    told = json.loads(out.read_text(encoding="utf-8"))
    assert told["subject"].endswith(f"preset {preset}")
    said = {one["reason"]: (one["verdict"], one["measured"]) for one in told["findings"]}
    assert set(said) == {*map(str, range(1, 21)), "B", "O", "V"}
    bad = {reason: words for reason, words in said.items() if words[0] in ("warning", "failure")}
    assert not [words for words in bad.values() if words[0] == "failure"], bad
    assert not bad.keys() - EXPLAINED.get(preset, {}).keys(), bad
    assert status == 0


def test_only_shipped_presets_are_explained():
    assert EXPLAINED.keys() <= set(preset_names())

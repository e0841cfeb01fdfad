"""The committed wire code is what the protos give."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_generated_code_is_up_to_date(tmp_path):
    subprocess.run(
        [ROOT / "bin" / "gen-protos", tmp_path],
        check=True,
        env=os.environ | {"PYTHON": sys.executable},
    )
    fresh = {
        path.name: path.read_text()
        for path in (tmp_path / "league" / "v1").iterdir()
        if path.is_file()
    }
    committed = {
        path.name: path.read_text() for path in (ROOT / "league" / "v1").iterdir() if path.is_file()
    }
    assert sorted(fresh) == sorted(committed)
    assert [name for name in fresh if fresh[name] != committed[name]] == [], "run bin/gen-protos"

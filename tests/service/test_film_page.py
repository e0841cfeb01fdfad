"""The page of a film in a real browser: it draws what the rasteriser draws."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from league.cli.main import main
from league.replay import load_replay
from league.views.film import Clip, Cut
from league.views.film.files import write_clips

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
WIDTH, FRAME = 960, 95


def screenshot(page: Path, frame: int, out: Path, folder: Path) -> np.ndarray:
    assert CHROMIUM is not None
    flags = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        "--force-device-scale-factor=1",
    ]
    size = f"--window-size={WIDTH + 36},900"  # the page's own margins
    subprocess.run(
        [
            CHROMIUM,
            *flags,
            f"--user-data-dir={folder}",
            "--virtual-time-budget=8000",
            size,
            f"--screenshot={out}",
            f"{page.as_uri()}#frame={frame}",
        ],
        check=True,
        capture_output=True,
    )
    with Image.open(out) as image:
        return np.asarray(image.convert("RGB")).astype(float)


@pytest.mark.long
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_the_page_looks_like_the_png(tmp_path: Path) -> None:
    fight = str(tmp_path / "x.replay")
    assert main(["demo", "based", "aggressive", "--seed", "4", "--save", fight]) == 0
    for name, options in (
        ("x.html", []),
        ("x.png", ["--width", str(WIDTH), "--from", f"{FRAME / 30:.4f}"]),
    ):
        out = ["--out", str(tmp_path / name)]
        assert main(["render", fight, *out, *(options or ["--to", "5"])]) == 0
    replay = load_replay(fight)
    clips = [Clip(replay, 30, Cut(stop=1)), Clip(replay, 30, Cut(start=(FRAME - 30) / 30, stop=5))]
    write_clips(tmp_path / "parts.html", clips, "x", 1280)
    for page, frame in (("x.html", FRAME), ("parts.html", 60)):
        look(tmp_path, page, frame)


def look(tmp_path: Path, page: str, frame: int) -> None:
    """The page's picture is that of x.png."""
    seen = screenshot(tmp_path / page, frame, tmp_path / "seen.png", tmp_path / "profile")
    with Image.open(tmp_path / "x.png") as image:
        drawn = np.asarray(image).astype(float)
    tall, left = drawn.shape[0], 18
    off = min(
        np.abs(seen[top : top + tall, left : left + WIDTH] - drawn).mean() for top in range(40, 80)
    )
    assert off < 5, f"{off:.1f} of 255 between the browser's and Pillow's picture"

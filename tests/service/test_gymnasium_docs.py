"""The examples of docs/gymnasium.md run as they stand, with fewer steps."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

PAGE = Path(__file__).resolve().parents[2] / "docs" / "gymnasium.md"
BLOCK = re.compile(
    r"<!-- run by tests/service/test_gymnasium_docs.py -->\n```python\n(.*?)```", re.DOTALL
)
FEWER = {"total_timesteps=200_000": "total_timesteps=2048", "range(1000)": "range(20)"}


def examples() -> list[str]:
    return BLOCK.findall(PAGE.read_text(encoding="utf-8"))


def run(code: str) -> dict:
    names: dict = {}
    exec(compile(code, str(PAGE), "exec"), names)
    return names


def shortened(code: str) -> str:
    for full, fewer in FEWER.items():
        code = code.replace(full, fewer)
    return code


def test_all_examples_are_found_and_every_other_says_who_runs_it() -> None:
    assert len(examples()) == 3
    page = PAGE.read_text(encoding="utf-8")
    assert page.count("```python") == len(re.findall(r"<!-- .* -->\n```python", page))


def test_one_environment() -> None:
    assert run(examples()[0])["observation"].shape == (74,)


@pytest.mark.long
def test_plain_ppo_trains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code = shortened(examples()[1])
    assert code != examples()[1]
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    model = run(code)["model"]
    assert torch.get_num_threads() == 1, "as the page says, and its figures are of"
    torch.set_num_threads(threads)
    assert model.num_timesteps == 2048
    assert model._n_updates > 0
    assert (tmp_path / "brawl-ppo.zip").stat().st_size > 0


def test_the_batch() -> None:
    assert run(shortened(examples()[2]))["observations"].shape == (256, 74)

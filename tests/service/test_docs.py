"""The marked examples of README and docs/ are run, against a finished run, and say what is
written there.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from cli_league import make_run, served

from league.cli.main import GROUP, main

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"<!-- tested -->\n```console\n(.*?)```", re.DOTALL)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@dataclass
class Example:
    """A command with the lines that its output must hold, numbers aside."""

    command: str
    lines: list[str] = field(default_factory=list)


def examples(page: Path) -> list[Example]:
    found: list[Example] = []
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append(Example(line[2:]))
            elif line != "...":
                found[-1].lines.append(line)
    return found


def alike(text: str) -> str:
    """A line without what differs from run to run: numbers, digests, spacing."""
    text = re.sub(r"\b[0-9a-f]{12,32}\b", "#", text)
    text = re.sub(r"\d+ (s|min|h) ago", "# s ago", text)  # on a busy machine it takes minutes
    return " ".join(re.sub(r"\d+", "#", text).split())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A working folder with a run in it, whose matchmaker is up (so that no example has to start
    one).
    """
    path = tmp_path_factory.mktemp("user")
    run_dir = path / "runs" / "laptop-1"
    (path / "ids.json").write_text(json.dumps(make_run(run_dir)))
    with served(run_dir):
        yield path


def pages_with_examples() -> list[Path]:
    return [page for page in PAGES if BLOCK.search(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.long] if page.name == "cli.md" else [])
        for page in pages_with_examples()
    ],
    ids=lambda page: page.name,
)
def test_examples_say_what_is_written(
    page: Path, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    match_id = json.loads(Path("ids.json").read_text())["snapshots"]
    for written in Path().glob("mine.toml"):
        written.unlink()
    for example in examples(page):
        program, *words = shlex.split(re.sub(r"\b[0-9a-f]{32}\b", match_id, example.command))
        assert program == "bin/league", f"{page.name}: only bin/league is run here, not {program}"
        assert main(words) == 0, f"{page.name}: {example.command}: {capsys.readouterr().err}"
        printed = {alike(line) for line in capsys.readouterr().out.splitlines()}
        for line in example.lines:
            assert alike(line) in printed, f"{page.name}: {example.command} does not print {line!r}"


def test_the_command_line_is_documented() -> None:
    ours = [
        point.name
        for point in entry_points(group=GROUP)
        if point.dist and point.dist.name == "kumite"
    ]
    assert ours
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    for name in ours:
        assert re.search(rf"^## {name}\b", text, re.MULTILINE), (
            f"docs/cli.md has no section on {name}"
        )


def anchors(page: Path) -> set[str]:
    """Of a page's headings, as GitHub and GitLab make them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#]*)#?([^)]*)\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            there = page.parent / target if target else page
            assert there.exists(), f"{page.name} links to {target}, which is not there"
            assert not anchor or anchor in anchors(there), f"{page.name} links to {target}#{anchor}"


def test_the_architecture_names_what_exists() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    folders = ("proto", "league", "learner", "matchmaker", "evaluator")
    there = [path for folder in folders for path in (ROOT / folder).rglob("*")]
    known = "".join(f"/{path.relative_to(ROOT)}{'/' * path.is_dir()}\n" for path in there)
    named = set(re.findall(r"`([\w/.-]+(?:/|\.py))`", text)) - {f"{name}/" for name in folders}
    assert len(named) > 50
    assert [name for name in named if f"/{name}\n" not in known] == []


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    for page in (ROOT / "docs").glob("*.md"):
        assert page.name == "README.md" or f"({page.name})" in index, (
            f"docs/README.md does not list {page.name}"
        )

"""bin/bootstrap with a stand-in for uv: what it calls, when not, and what it says when it can't.

The real installation is what `bin/test` itself begins with.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
LAUNCHERS = ("start-league", "learner", "matchmaker", "evaluator", "league")
PYTHON = f"""#!/bin/sh
case "$1 $2" in
    "-m venv") mkdir -p "$3/bin" && cp "$0" "$3/bin/python"; exit;;
    "-m pip") [ "$3" = install ] && cp "$FAKES/uv" "$(dirname "$0")/uv"; exit 0;;
esac
exec {sys.executable} "$@"
"""
UV = """#!/bin/sh
[ "$1" = --version ] && { echo "uv 0"; exit; }
echo "begin $*" >>"$FAKES/calls"
env | grep -E "^(UV_|SSL_|ALL_PROXY)" | sort >"$FAKES/environment"
sleep 0.2
echo end >>"$FAKES/calls"
exit $(cat "$FAKES/status")
"""


class Checkout:
    """A copy of what bootstrap needs, with a stand-in interpreter and installer."""

    def __init__(self, folder: Path, name: str = "checkout") -> None:
        self.root = folder / name
        self.fakes = folder / "fakes"
        (self.root / "bin").mkdir(parents=True)
        self.fakes.mkdir()
        inputs = ("requirements.lock", "pyproject.toml", "bin/bootstrap", "bin/pip-settings-for-uv")
        for name in inputs:
            shutil.copy(ROOT / name, self.root / name)
        for name, text in (("python3", PYTHON), ("uv", UV)):
            (self.fakes / name).write_text(text)
            (self.fakes / name).chmod(0o755)
        (self.fakes / "status").write_text("0")

    def environment(self, **more: str) -> dict[str, str]:
        kept = {
            k: v
            for k, v in os.environ.items()
            if not k.startswith(("PIP_", "UV_", "SSL_", "KUMITE_"))
        }
        own = {
            "PATH": f"{self.fakes}:/usr/bin:/bin",
            "FAKES": str(self.fakes),
            "PIP_CONFIG_FILE": os.devnull,
        }
        return {**kept, **own, **more}

    def start(self, *words: str, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [str(self.root / "bin" / "bootstrap"), *words],
            env=self.environment(**environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str, **environment: str) -> tuple[int, str]:
        """Exit status and what it said on stderr; stdout must stay empty."""
        process = self.start(*words, **environment)
        out, said = process.communicate()
        assert out == ""
        return process.returncode, said

    def calls(self) -> list[str]:
        file = self.fakes / "calls"
        return file.read_text().splitlines() if file.exists() else []


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_it_installs_once_and_then_does_nothing(checkout: Checkout) -> None:
    status, said = checkout.run()
    assert status == 0, said
    calls = [call for call in checkout.calls() if call.startswith("begin")]
    assert len(calls) == 2
    assert "--requirements pyproject.toml" in calls[0]
    assert "--constraints requirements.lock" in calls[0]
    assert "--no-deps --no-build-isolation --editable" in calls[1]
    assert checkout.run() == (0, "")
    assert len(checkout.calls()) == 4


def test_all_packages_also_serve_a_call_that_wants_fewer(checkout: Checkout) -> None:
    assert checkout.run()[0] == 0
    assert checkout.run("--all")[0] == 0
    calls = [call for call in checkout.calls() if call.startswith("begin")]
    assert "--requirements requirements.lock" in calls[2]
    assert checkout.run() == checkout.run("--all") == (0, "")
    assert len(checkout.calls()) == 8


@pytest.mark.parametrize("name", ["requirements.lock", "pyproject.toml"])
def test_a_change_of_what_is_wanted_installs_again(checkout: Checkout, name: str) -> None:
    checkout.run()
    with (checkout.root / name).open("a") as file:
        file.write("# changed\n")
    assert checkout.run()[0] == 0
    assert len(checkout.calls()) == 8


def test_two_at_once_install_once(checkout: Checkout) -> None:
    both = [checkout.start(), checkout.start()]
    assert [process.wait() for process in both] == [0, 0]
    for process in both:
        process.communicate()
    assert [call.split()[0] for call in checkout.calls()] == ["begin", "end"] * 2


def test_what_failed_is_tried_again(checkout: Checkout) -> None:
    (checkout.fakes / "status").write_text("1")
    status, said = checkout.run()
    assert status == 1
    assert said.splitlines()[-1].startswith("bootstrap: ")
    (checkout.fakes / "status").write_text("0")
    assert checkout.run()[0] == 0
    assert checkout.run() == (0, "")


def test_pips_settings_are_handed_on_to_uv(checkout: Checkout) -> None:
    status, said = checkout.run(
        PIP_FIND_LINKS="/wheels /more",
        PIP_INDEX_URL="https://mirror.invalid/simple",
        PIP_EXTRA_INDEX_URL="https://one.invalid https://two.invalid",
        PIP_CERT="/certs.pem",
        UV_HTTP_TIMEOUT="7",
        PIP_DEFAULT_TIMEOUT="99",
    )
    assert status == 0, said
    handed = dict(
        line.split("=", 1) for line in (checkout.fakes / "environment").read_text().splitlines()
    )
    assert handed == {
        "UV_FIND_LINKS": "/wheels,/more",
        "UV_DEFAULT_INDEX": "https://mirror.invalid/simple",
        "UV_INDEX": "https://one.invalid https://two.invalid",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "SSL_CERT_FILE": "/certs.pem",
        "UV_HTTP_TIMEOUT": "7",
    }


def test_without_any_such_setting_uv_chooses_the_build_of_torch(checkout: Checkout) -> None:
    checkout.run()
    assert (checkout.fakes / "environment").read_text() == "UV_TORCH_BACKEND=auto\n"


def test_a_clone_whose_path_has_a_hash_or_a_bracket_is_installed(tmp_path: Path) -> None:
    """uv reads them in the path of an editable project as a fragment and as extras."""
    checkout = Checkout(tmp_path, "a [b] #c")
    assert checkout.run()[0] == 0
    (line,) = [line for line in checkout.calls() if "--editable" in line]
    assert not set("#[") & set(line.partition("--editable")[2])


@pytest.mark.parametrize("version", ["3.9.1", "3.10.14", "3.14.0"])
def test_a_python_that_does_not_fit_is_named(checkout: Checkout, version: str) -> None:
    numbers = tuple(map(int, version.split(".")))
    stand_in = (
        f'#!/bin/sh\n[ "$1" = --version ] && {{ echo "Python {version}"; exit; }}\n'
        f'exec {sys.executable} -c "import sys; sys.version_info = {numbers}; $2"\n'
    )
    for name in ("python3", "python3.13", "python3.12", "python3.11", "python"):
        (checkout.fakes / name).write_text(stand_in)
        (checkout.fakes / name).chmod(0o755)
    status, said = checkout.run()
    assert status == 1
    assert f"Python {version}" in said
    assert said.count("\n") == 1


def test_an_interpreter_that_was_named_must_fit(checkout: Checkout) -> None:
    status, said = checkout.run(KUMITE_PYTHON="/bin/false")
    assert status == 1
    assert "KUMITE_PYTHON=/bin/false" in said


@pytest.mark.parametrize("name", LAUNCHERS)
def test_launchers_are_short_and_bootstrap_first(name: str) -> None:
    file = ROOT / "bin" / name
    lines = file.read_text().splitlines()
    assert len(lines) < 15
    assert os.access(file, os.X_OK)
    assert any("bin/bootstrap" in line for line in lines)


def pins() -> dict[str, list[str]]:
    """Versions by package (several where they differ by Python)."""
    found: dict[str, list[str]] = {}
    for line in (ROOT / "requirements.lock").read_text().splitlines():
        if not line.startswith("#"):
            name, _, version = line.split(";")[0].strip().partition("==")
            found.setdefault(name, []).append(version)
    return found


def test_the_lock_pins_all_that_the_project_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]
    for requirement in map(Requirement, wanted):
        versions = pins().get(requirement.name.lower().replace("_", "-"), [])
        assert versions, f"{requirement} is not in requirements.lock: run bin/lock"
        assert all(requirement.specifier.contains(version) for version in versions), requirement


def test_every_build_of_torch_meets_the_lock() -> None:
    assert pins()["torch"] == ["2.13.0"]
    assert not [name for name in pins() if name.startswith(("nvidia", "cuda", "triton"))]
    text = (ROOT / "requirements.lock").read_text()
    assert not any(mark in text.replace("bin/lock", "") for mark in ("://", "/", "--", "+", " @ "))

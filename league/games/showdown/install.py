"""Installs Showdown's simulator by npm, in fixed versions.

npm checks every package against its digest in `npm/package-lock.json`. pip installs poke-env, which
tracks the state of battles.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from league.errors import ConfigError, Unavailable

PACKAGE = "pokemon-showdown"
POKE_ENV = "poke-env==0.16.0"
"""poke-env is installed without its dependencies, because it requires an older gymnasium than the
project's lock file has. It also works with the newer version.
"""
VARIABLE = "KUMITE_SHOWDOWN"
_WANTED = Path(__file__).with_name("npm")
_OPTIONS = ("--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund")
"""npm's options. They leave out the packages of Showdown's website, and never run a package's own
installation scripts.
"""


def folder() -> Path:
    """Returns the installation's folder: `KUMITE_SHOWDOWN`, or a folder in the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get(VARIABLE) or Path(cache) / "kumite" / "showdown")


def version() -> str:
    """Returns the simulator's version, which determines the rules."""
    return json.loads((_WANTED / "package.json").read_text())["dependencies"][PACKAGE]


def installed() -> Path:
    """Returns the installation's folder. Raises `ConfigError` without Node or the simulator."""
    where = folder()
    _program("node")
    package = where / "node_modules" / PACKAGE / "package.json"
    current = json.loads(package.read_text())["version"] if package.exists() else None
    if current != version():
        has = f"has no {PACKAGE}" if current is None else f"has {PACKAGE} {current}"
        raise ConfigError(
            f"{where} {has}, and version {version()} is wanted: run bin/league showdown install"
        )
    return where


def install() -> Path:
    """Installs or repairs the simulator and poke-env. Returns the simulator's folder.

    Raises:
        ConfigError: Node or npm is missing.
        Unavailable: npm or pip could not install them.
    """
    where = folder()
    _program("node")
    npm = _program("npm")
    where.mkdir(parents=True, exist_ok=True)
    for file in _WANTED.iterdir():
        shutil.copyfile(file, where / file.name)
    _run([npm, "ci", *_OPTIONS], f"npm could not install {PACKAGE} in {where}", where)
    pip = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-deps"]
    _run([*pip, POKE_ENV], f"pip could not install {POKE_ENV}", where)
    return installed()


def _run(command: list[str], failure: str, where: Path) -> None:
    done = subprocess.run(command, cwd=where, capture_output=True, text=True)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or [""]
        raise Unavailable(f"{failure}: {lines[0]}")


def _program(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise ConfigError(
            f"the game 'showdown' needs Node.js 18 or newer, and there is no program {name!r}: "
            "install Node.js, then run bin/league showdown install"
        )
    return path

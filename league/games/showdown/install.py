"""Where Showdown's simulator is installed, and how: by npm, in versions that are known.

`npm/package-lock.json` has the digest of every package, which npm compares. poke-env, which follows
the battles, comes by pip.
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
"""Installed without its dependencies: it wants an older gymnasium than the lock has, and does not
need it.
"""
VARIABLE = "KUMITE_SHOWDOWN"
_WANTED = Path(__file__).with_name("npm")
_OPTIONS = ("--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund")
"""Without the packages that its website needs, and without programs of the packages being run."""


def folder() -> Path:
    """The folder of the installation: `KUMITE_SHOWDOWN`, or one in the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get(VARIABLE) or Path(cache) / "kumite" / "showdown")


def version() -> str:
    """The version of the simulator, on which the rules depend."""
    return json.loads((_WANTED / "package.json").read_text())["dependencies"][PACKAGE]


def installed() -> Path:
    """The folder; raises `ConfigError` unless Node and the simulator are there."""
    where = folder()
    _program("node")
    package = where / "node_modules" / PACKAGE / "package.json"
    found = json.loads(package.read_text())["version"] if package.exists() else None
    if found != version():
        has = f"has no {PACKAGE}" if found is None else f"has {PACKAGE} {found}"
        raise ConfigError(
            f"{where} {has}, and version {version()} is wanted: run bin/league showdown install"
        )
    return where


def install() -> Path:
    """Installs the simulator and poke-env, or repairs them; returns the simulator's folder.

    Raises:
        ConfigError: there is no Node or npm.
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
        said = (done.stderr or done.stdout).strip().splitlines() or [""]
        raise Unavailable(f"{failure}: {said[0]}")


def _program(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise ConfigError(
            f"the game 'showdown' needs Node.js 18 or newer, and there is no program {name!r}: "
            "install Node.js, then run bin/league showdown install"
        )
    return path

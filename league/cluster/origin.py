"""What ``--from`` may name, checked before a run folder is made for it."""

from __future__ import annotations

from pathlib import Path

from league.errors import ConfigError, nearest
from league.runs.folder import DATABASE

SUFFIXES = (".safetensors", ".pt")


def check_origin(origin: str | None, run_dir: Path | None) -> None:
    """Raises `ConfigError` when a run in `run_dir` (None: a new one) can't start from `origin`.

    What the file holds, and whether its agent has the right size, only the learner can tell.
    """
    if not origin:
        return
    if run_dir is not None and has_steps(run_dir):
        raise ConfigError(
            f"--from {origin}: the run in {run_dir} has steps of its own already; "
            "leave --from out to go on, or give a new --run-dir"
        )
    file = Path(origin)
    if file.is_file():
        if file.suffix not in SUFFIXES:
            raise ConfigError(f"--from {origin}: only {' and '.join(SUFFIXES)} files hold an agent")
    elif run_dir is None or not (run_dir / DATABASE).exists():
        raise ConfigError(
            f"--from {origin}: there is no such file{_near(file)}; a new run has no members yet, so name "
            "a file of another run: RUN/blobs/SHA256.safetensors or RUN/learner-main/checkpoints/step_N.pt"
        )


def has_steps(run_dir: Path) -> bool:
    """Whether a main of the run has left a checkpoint: it goes on from that, and from nothing
    else.
    """
    return any(run_dir.glob("learner-*/checkpoints/step_*.pt"))


def _near(file: Path) -> str:
    """The file beside it that was probably meant."""
    try:
        names = [entry.name for entry in file.parent.iterdir() if entry.suffix in SUFFIXES]
    except OSError:
        return ""
    near = nearest(file.name, names)
    return f" ({near})" if near else ""

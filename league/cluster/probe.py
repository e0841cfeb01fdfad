"""Says which device the learner will take, in a process of its own: the supervisor stays free of torch."""

from __future__ import annotations

import subprocess
import sys

from league.errors import DeviceError, LeagueError


def device_sentence(gpu: int | None, cpu: bool) -> str:
    """Which device, why, and its memory. Raises `DeviceError` when the one asked for is missing."""
    arguments = [*(["--gpu", str(gpu)] if gpu is not None else []), *(["--cpu"] if cpu else [])]
    command = [sys.executable, "-m", "league.cluster.probe", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        words = done.stderr.strip().splitlines() or [f"the device check ended by exit code {done.returncode}"]
        raise DeviceError(words[-1])
    return done.stdout.strip()


def main(arguments: list[str]) -> int:
    from league.device import choose_device

    gpu = int(arguments[arguments.index("--gpu") + 1]) if "--gpu" in arguments else None
    try:
        print(choose_device(gpu, "--cpu" in arguments)[1])
    except LeagueError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

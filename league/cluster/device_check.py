"""Finds the device that the learner will use, in another process: the supervisor loads no torch."""

from __future__ import annotations

import argparse
import subprocess
import sys

from league.errors import DeviceError, LeagueError
from league.settings.device_flags import DeviceFlags, add_device_flags


def device_sentence(flags: DeviceFlags) -> str:
    """The device, the reason, and its memory; raises `DeviceError` for a missing device."""
    command = [sys.executable, "-m", __name__, *flags.arguments()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise DeviceError(lines[-1] if lines else f"the device check ended by {done.returncode}")
    return done.stdout.strip()


def _main(arguments: list[str]) -> int:
    from league.agent.device import choose_devices

    parser = argparse.ArgumentParser()
    add_device_flags(parser)
    try:
        print(choose_devices(DeviceFlags.of(parser.parse_args(arguments)))[1])
    except LeagueError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))

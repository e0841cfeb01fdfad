"""Says which device the learner will take, in a process of its own: the supervisor stays free of
torch.
"""

from __future__ import annotations

import argparse
import subprocess
import sys

from league.errors import DeviceError, LeagueError
from league.settings.device_flags import DeviceFlags, add_device_flags


def device_sentence(flags: DeviceFlags) -> str:
    """Which device, why, and its memory. Raises `DeviceError` when one that was asked for is
    missing.
    """
    command = [sys.executable, "-m", "league.cluster.probe", *flags.arguments()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        words = done.stderr.strip().splitlines() or [
            f"the device check ended by exit code {done.returncode}"
        ]
        raise DeviceError(words[-1])
    return done.stdout.strip()


def main(arguments: list[str]) -> int:
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
    sys.exit(main(sys.argv[1:]))

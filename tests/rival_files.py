"""Files of other people's agents, good and hostile, and the seats that play them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from league.agent.rival_bundles import bundles, pack, trust
from league.agent.rivals import Limits, RivalSeats
from league.runs.blobs import BlobFolder

LIMITS = Limits(decision_seconds=20.0, hang_seconds=20.0)
"""No decision of a good rival is late, however busy the machine is."""
HEAD = "from environment.agent import Agent\n"
CLASS = HEAD + "class SubmittedAgent(Agent):\n    "
RUNS_RIGHT = HEAD + (
    """
import gdown

class Runner(Agent):
    def predict(self, obs):
        print(obs, self.env.get_spawner_info())
        pos = self.obs_helper.get_section(obs, "player_pos")
        other = self.obs_helper.get_section(obs, "opponent_pos")
        action = self.act_helper.zeros()
        action = self.act_helper.press_keys(["d" if other[0] > pos[0] else "a"], action)
        if abs(other[0] - pos[0]) < 2:
            action = self.act_helper.press_keys("j", action)
        obs[:] = 0
        return action
"""
)
"""As participants write: its imports, its prints, its changes of the observation."""


CYCLES = f"""
calls = 0
{CLASS}def predict(self, obs):
        global calls
        calls += 1
        return [float((calls - 1) % 10 == key) for key in range(10)]
"""
"""Presses one key after the other, another one in each decision."""


def predicts(line: str, imports: str = "") -> str:
    return f"{imports}\n{CLASS}def predict(self, obs):\n        {line}\n        return [0] * 10\n"


FORGES = """
import os
import struct


def forge(part, times=1):
    for name in os.listdir("/proc/self/fd"):
        try:
            if os.readlink("/proc/self/fd/" + name).startswith("socket"):
                for _ in range(times):
                    os.write(int(name), part)
                return
        except OSError:
            pass


def answer(seat, key):
    return struct.pack("=I10sB300s", seat, bytes([key] * 10), 0, b"")
"""
HOSTILE = {
    "loop": (predicts("while True: pass"), "it took over 1 s"),
    "prints": (predicts("while True: print('x' * 10_000)"), "it took over 1 s"),
    "fork": (
        predicts("[os.fork() for _ in range(3)]", "import os"),
        "PermissionError.*my_agent.py, line",
    ),
    "program": (predicts("subprocess.run(['ls'])", "import subprocess"), "PermissionError"),
    "memory": (predicts("np.ones(10 << 27)", "import numpy as np"), "Unable to allocate 10.0 GiB"),
    "exit": (predicts("sys.exit(3)", "import sys"), "SystemExit: 3"),
    "death": (predicts("os._exit(3)", "import os"), "its process exited 3"),
    "parent": (predicts("os.kill(os.getppid(), 9)", "import os"), "PermissionError"),
    "network": (predicts("socket.create_connection(('127.0.0.1', 1))", "import socket"), "Permiss"),
    "file": (predicts("open('x', 'wb').write(bytes(9 << 20))"), "File too large"),
    "files": (predicts("[open(str(n), 'w').close() for n in range(3000)]"), "it wrote over 2,000"),
    "folders": (
        predicts(
            "[(os.mkdir('a'), os.chdir('a')) for _ in range(1500)] and time.sleep(1.5)",
            "import os, time",
        ),
        "it wrote over 2,000",
    ),
    "secret": (predicts("open('/etc/hostname').read()"), "PermissionError"),
    "sibling": (
        predicts("open(os.path.dirname(os.getcwd()) + '/x', 'w')", "import os"),
        "PermissionError",
    ),
    "environment": (
        predicts("open(f'/proc/{os.getppid()}/environ').read()", "import os"),
        "PermissionError",
    ),
    "shape": (predicts("return [0] * 9"), r"shape \(9,\): ten keys are wanted"),
    "nan": (predicts("return [float('nan')] * 10"), "NaN: ten keys are wanted"),
    "words": (predicts("return ['left'] * 10"), "could not convert string to float"),
    "constructor": (
        CLASS + "def __init__(self): raise ValueError('no\\n\\x1b[2J<b>luck')\n",
        r"ValueError: no  ?\[2J<b>luck \(my_agent.py, line 3\)$",
    ),
    "syntax": (
        "x = 1\nclass SubmittedAgent(:\n",
        r"failed: SyntaxError: invalid syntax \(my_agent.py, line 2\)$",
    ),
    "path": (
        predicts("open(os.getcwd() + '/no')", "import os"),
        r"failed: FileNotFoundError: .* directory: 'no' \(my_agent.py, line \d+\)$",
    ),
    "package": ("import onnxruntime_of_nobody\n", "No module named 'onnxruntime_of_nobody'"),
    "forgery": (predicts("forge(b'[{}]\\n')", FORGES), "its process sent no keys"),
    "flood": (predicts("forge(b'[' * 100_000, 10**9)", FORGES), "its process sent no keys"),
}
"""Files by name, each with the reason for which its match fails."""


def stored(blobs: BlobFolder, text: str, folder: Path) -> str:
    """Returns the digest of a file's bundle among the blobs. It is trusted."""
    file = folder / "a_rival.py"
    file.write_text(text)
    digest = bundles(blobs).put(pack(file))
    trust(digest)
    return digest


@contextmanager
def seats(blobs: BlobFolder, limits: Limits = LIMITS) -> Iterator[RivalSeats]:
    with closing(RivalSeats(blobs, limits)) as made:
        yield made

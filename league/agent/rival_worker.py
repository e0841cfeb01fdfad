"""Runs a rival's agents in a confined process.

    python -I -B -m league.agent.rival_worker PARENT_PID [CONNECTION MEMORY_BYTES]

A rival is another person's agent. The working directory holds its files. A request lists the seats
that end their matches ("end"), begin a match ("begin"), or decide about an observation ("see"). The
request starts with the header `REQUEST`. Then come the numbers (uint32) of the seats that end,
begin and see, in this order, and then an observation (a row of float64) for each seat that sees.
Each seat that begins or sees answers with an `ANSWER`, in the same order. The rival's file is run
again for every match, so that its globals are new, as in the tournament.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import platform
import resource
import socket
import struct
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from league.agent.export import ai2_seat
from league.service.die_with_parent import tie_to

FILE = "my_agent.py"
NICE = 5
REASON = 300
"""Largest size of the text that says why an agent failed, in bytes."""
REQUEST = struct.Struct("=4I")
"""The header of a request: how many seats end, how many begin and how many see, and how many
numbers an observation has.
"""
ANSWER = struct.Struct(f"=I10sB{REASON}s")
"""An answer: the seat, its ten keys (bytes 0 or 1), whether its agent failed, and the reason."""
MEMORY_BYTES = 8 << 30
FRAMES = 4
"""Largest number of locations in the rival's files that the reason of a failure lists."""
LIMITS = {
    resource.RLIMIT_CORE: 0,
    resource.RLIMIT_FSIZE: 1 << 20,  # bytes of each file that the process writes
    resource.RLIMIT_NOFILE: 256,
}
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
MACHINE = 0xC000003E  # AUDIT_ARCH_X86_64
CLONE, CLONE3, PRLIMIT = 56, 435, 302
FORBIDDEN = {
    **{"socket": 41, "fork": 57, "vfork": 58, "execve": 59, "execveat": 322},
    **{"ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311},
    **{"rt_sigqueueinfo": 129, "rt_tgsigqueueinfo": 297, "tkill": 200},
    **{"pidfd_open": 434, "pidfd_send_signal": 424, "setrlimit": 160, "unshare": 272},
    **{"setns": 308, "io_uring_setup": 425},
}
"""Linux system calls (on x86-64) that rivals may not make, because they reach other processes or
the network.
"""
OWN_PROCESS = {"kill": 62, "tgkill": 234}
"""System calls that a rival may make only for its own process."""


BARRED: Mapping[str, Callable[[], object]] = {
    "your files": lambda: os.listdir("/"),
    "other programs": lambda: os.fork() or os._exit(0),
    "the network": lambda: socket.socket().close(),
}
"""The things that a rival may not reach, each with a function that tries to reach it."""
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # Landlock's system calls
READ, WRITE, OF_FILES = 0b1101, 0b110, 0b111 | 1 << 14
"""Landlock rights. `READ` allows execution, reading and listing, and `WRITE` allows reading and
writing. `OF_FILES` has all rights that apply to files.
"""
READABLE = (
    *(sys.prefix, sys.base_prefix, "/usr", "/lib", "/lib64", "/proc/self", "/sys/devices/system"),
    *("/etc/ld.so.cache", "/etc/localtime", "/etc/passwd", "/proc/cpuinfo", "/proc/meminfo"),
    *("/dev/urandom", "/dev/random"),
)
"""Files that a rival may read in addition to its own files."""


def confine(parent: int, memory_bytes: int, readable: Sequence[str] = ()) -> None:
    """Gives up all rights of this process that an agent doesn't need. This can't be undone.

    Args:
        parent: id of the process that started this process. When the parent ends, this process ends
            too.
        memory_bytes: largest address space of this process.
        readable: files and folders that the agent may read, in addition to `READABLE`.
    """
    tie_to(parent)
    os.nice(NICE)
    with contextlib.suppress(OSError):  # makes Linux end this process first if memory runs out
        Path("/proc/self/oom_score_adj").write_text("1000")
    for limit, most in {**LIMITS, resource.RLIMIT_AS: memory_bytes}.items():
        with contextlib.suppress(ValueError, OSError):  # not every system has this limit
            resource.setrlimit(limit, (most, most))
    if sys.platform == "linux":
        _hide_files(os.getcwd(), readable)
    if not _filter_calls():
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))


def _hide_files(own: str, readable: Sequence[str]) -> None:
    """Makes the kernel refuse access to most files (Landlock, Linux 5.13 and later). The rival may
    only read `READABLE` and `readable`, and read and write files in the folder `own`.
    """
    libc = _libc()
    version = libc.syscall(CREATE_RULESET, None, 0, 1)
    if version < 1:
        return
    every = (1 << 13) - 1 | (version > 1) << 13 | (version > 2) << 14
    rules = libc.syscall(CREATE_RULESET, struct.pack("=Q", every), 8, 0)
    allowed = [
        *((path, READ) for path in (*READABLE, *readable)),
        ("/dev/null", WRITE),
        (own, every),
    ]
    for path, rights in allowed:
        with contextlib.suppress(OSError):
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
            rights &= every if os.path.isdir(path) else OF_FILES & every
            libc.syscall(ADD_RULE, rules, 1, struct.pack("=Qi", rights, place), 0)
            os.close(place)
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    libc.syscall(RESTRICT_SELF, rules, 0)
    os.close(rules)


def _libc() -> Any:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl.argtypes = [ctypes.c_int, *4 * [ctypes.c_void_p]]
    libc.syscall.restype = ctypes.c_long
    return libc


def _filter_calls() -> bool:
    """Makes the kernel refuse the forbidden system calls (seccomp). Returns False if it can't."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    load, equal, has, done = 0x20, 0x15, 0x45, 0x06  # BPF: ld, jeq, jset, ret
    allow, errno, kill = 0x7FFF0000, 0x00050000, 0x80000000
    number, machine, first, third = 0, 4, 16, 32  # places in the kernel's record of a call
    refuse = (done, 0, 0, errno | 1)  # EPERM
    code = [(load, 0, 0, machine), (equal, 1, 0, MACHINE), (done, 0, 0, kill), (load, 0, 0, number)]
    for call in FORBIDDEN.values():
        code += [(equal, 0, 1, call), refuse]
    code += [(equal, 0, 1, CLONE3), (done, 0, 0, errno | 38)]  # after ENOSYS, libc calls clone
    # The process may start threads (CLONE_THREAD), but no other processes.
    code += [(equal, 0, 4, CLONE), (load, 0, 0, first), (has, 1, 0, 0x10000), refuse]
    code += [(done, 0, 0, allow)]
    for call in OWN_PROCESS.values():
        code += [(equal, 0, 4, call), (load, 0, 0, first), (equal, 1, 0, os.getpid()), refuse]
        code += [(done, 0, 0, allow)]
    # The process may read its limits (a call without a new value), but may not set them.
    code += [(equal, 0, 6, PRLIMIT), (load, 0, 0, third), (equal, 0, 3, 0)]
    code += [(load, 0, 0, third + 4), (equal, 0, 1, 0), (done, 0, 0, allow), refuse]
    code += [(done, 0, 0, allow)]
    rules = b"".join(struct.pack("=HBBI", *step) for step in code)
    buffer = ctypes.create_string_buffer(rules)
    program = struct.pack("HxxxxxxP", len(code), ctypes.addressof(buffer))
    libc = _libc()
    return (
        libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
        and libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0) == 0
    )


def reason_of(error: BaseException, folder: str) -> str:
    """Returns an error's type and message, and the locations in the rival's files that led to it,
    innermost first. The paths omit the rival's own folder and the folders of Python.
    """
    words = " ".join("".join(traceback.format_exception_only(error)).split())
    places = [(one.filename, one.lineno) for one in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError) and error.filename:
        places.append((error.filename, error.lineno))
        words = f"{type(error).__name__}: {error.msg}"
    lines = [
        f"{os.path.relpath(file, folder)}, line {line}"
        for file, line in places
        if file.startswith(folder)
    ]
    for place in (folder, sys.prefix, sys.base_prefix):
        words = words.replace(f"{place}/", "")
    place = f" ({', from '.join(lines[: -FRAMES - 1 : -1])})"[: REASON // 2] if lines else ""
    return words[: REASON - len(place)] + place


class Request(NamedTuple):
    """Holds the seats that end, begin and see, and an observation for each seat that sees."""

    end: list[int]
    begin: list[int]
    see: list[int]
    observations: Any

    @classmethod
    def read(cls, connection: BinaryIO) -> Request | None:
        """Reads the next request. Returns None at the end of the connection."""
        import numpy as np  # imported here, so that numpy starts threads only after `confine`

        head = connection.read(REQUEST.size)
        if not head:
            return None
        *counts, width = REQUEST.unpack(head)
        end, begin, see = (
            np.frombuffer(connection.read(4 * count), np.uint32).tolist() for count in counts
        )
        rows = np.frombuffer(connection.read(8 * len(see) * width), np.float64)
        return cls(end, begin, see, rows.reshape(len(see), width))


class Agents:
    """Holds the agents of all seats."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._agents: dict[int, tuple[Any, ai2_seat.Env]] = {}

    def answers(self, request: Request) -> Iterator[bytes]:
        """Answers a request, seat by seat. An agent that fails is removed from its seat."""
        for seat in request.end:
            self._agents.pop(seat, None)
        begin = [(seat, None) for seat in request.begin]
        see = zip(request.see, request.observations, strict=True)
        for seat, seen in [*begin, *see]:
            keys, reason = b"", ""
            try:
                if seen is None:
                    self._begin(seat)
                else:
                    keys = self._decide(seat, seen)
            except BaseException as error:  # also SystemExit
                reason = reason_of(error, self._folder)
                self._agents.pop(seat, None)
            yield answer(seat, keys, reason)

    def _begin(self, seat: int) -> None:
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", None) or "").startswith(self._folder):
                del sys.modules[name]
        env = ai2_seat.stand_in()
        self._agents[seat] = ai2_seat.loaded(os.path.join(self._folder, FILE), env), env

    def _decide(self, seat: int, seen: Any) -> bytes:
        import numpy as np

        agent, env = self._agents[seat]
        env.seen, seen = seen, seen.copy()
        action = np.asarray(agent.predict(seen), np.float64)
        if action.shape != (len(ai2_seat.KEYS),):
            raise ValueError(f"predict returned the shape {action.shape}: ten keys are wanted")
        if np.isnan(action).any():
            raise ValueError("predict returned NaN: ten keys are wanted")
        return (action > 0.5).tobytes()


def answer(seat: int, keys: bytes = b"", reason: str = "") -> bytes:
    """Packs the answer of a seat. If a reason is given, the answer says that the agent failed."""
    return ANSWER.pack(seat, keys, bool(reason), reason.encode("utf-8", "replace"))


def barred() -> list[str]:
    """Tries to reach each thing in `BARRED`, and returns those that the kernel refuses.

    The caller must have confined this process like the process of a rival.
    """
    found = []
    for words, attempt in BARRED.items():
        try:
            attempt()
        except OSError:
            found.append(words)
    return found


def check(parent: str, checkout: str) -> None:
    """Confines this process, and plays the agent in the working directory for `ai2_check`.
    `checkout` is a folder with the tournament's repository, or "".
    """
    folder, answers = os.getcwd(), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # discards the agent's own output
    confine(int(parent), MEMORY_BYTES, [checkout] if checkout else [])
    for name in [name for name in sys.modules if name.partition(".")[0] == "league"]:
        del sys.modules[name]  # so that the agent can't import it
    try:
        ai2_seat.main(os.path.join(folder, FILE), checkout)
    except BaseException as error:  # also SystemExit
        os.write(answers, json.dumps({"failed": reason_of(error, folder)}).encode() + b"\n")


def main(parent: str, connection: str = "", memory_bytes: str = str(MEMORY_BYTES)) -> None:
    """Answers requests until the connection ends. Without a connection, prints `barred()`."""
    confine(int(parent), int(memory_bytes))
    if not connection:
        print(json.dumps(barred()))
        return
    ai2_seat.WANTS_CHECKOUT = "{} is not in the stand-in that a rival gets for the tournament"
    agents = Agents(os.getcwd())
    sys.path.insert(0, os.getcwd())
    with (
        os.fdopen(int(connection), "rb") as requests,
        open(os.dup(int(connection)), "wb", buffering=0) as answers,
    ):
        while (request := Request.read(requests)) is not None:
            for one in agents.answers(request):
                answers.write(one)


if __name__ == "__main__":
    main(*sys.argv[1:])

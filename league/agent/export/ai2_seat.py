"""Plays a file's `SubmittedAgent` as the AI² tournament does, in a process for each match.

This program needs Python 3.10 and numpy. The agent's file may import only packages that both the
tournament's environment and this Python have. The tournament's game is called the original game
here. With a checkout of the tournament's repository, the agent gets the original game's
environment.

The first line of output is {"start_seconds": …}. Each line of input is an observation of the
original game as a JSON list, and the answer is {"action": […], "ms": …}.
"""

import collections
import dataclasses
import enum
import functools
import importlib.abc
import importlib.util
import json
import math
import os
import random
import sys
import time
import types
import typing
from typing import Any

PACKAGES = """
    IPython OpenGL PIL _pytest annotated_types anyio asttokens bs4 certifi cffi charset_normalizer
    cloudpickle contourpy cryptography cv2 cycler dateutil deprecation distro executing filelock
    fontTools fsspec functorch gdown gym gym_notices gymnasium h11 h2 hf_xet hpack httpcore httpx
    huggingface_hub hyperframe idna imageio iniconfig ipython_pygments_lexers jedi jinja2 jiter
    joblib jwt kiwisolver lazy_loader loguru markupsafe matplotlib matplotlib_inline mpl_toolkits
    mpmath multidict networkx numpy nvidia openai packaging pandas parso pexpect pip pkg_resources
    pluggy postgrest prompt_toolkit propcache psutil ptyprocess pure_eval py py4j pycparser pydantic
    pydantic_core pygame pygments pylab pymunk pyparsing pyspark pytest pytz realtime regex requests
    safetensors sb3_contrib scipy setuptools skimage sklearn skvideo sniffio socks soupsieve
    stable_baselines3 stack_data storage3 supabase supabase_auth supabase_functions sympy
    threadpoolctl tifffile tokenizers torch torchgen tqdm traitlets transformers triton
    typing_extensions typing_inspection tzdata urllib3 wcwidth websockets yaml yarl
"""
"""Modules that the tournament's requirements.txt installs, by the names used in imports."""
OWN = ("environment", "user", "server")
"""The tournament's own packages."""
WANTS_CHECKOUT: str = "{} is the tournament's own code: name a checkout with --game ai2:FOLDER"


PLAYER = {
    **{"pos": 2, "vel": 2, "facing": 1, "grounded": 1, "aerial": 1, "jumps_left": 1, "state": 1},
    **{"recoveries_left": 1, "dodge_timer": 1, "stun_frames": 1, "damage": 1, "stocks": 1},
    **{"move_type": 1, "weapon_type": 1},
    **{f"spawner_{number}": 3 for number in (1, 2, 3, 4)},
    **{"moving_platform_pos": 2, "moving_platform_vel": 2},
}
"""Sections of a player's part of the observation, in order, with their sizes."""
KEYS = ("w", "a", "s", "d", "space", "h", "l", "j", "k", "g")
SPAWNED = {1: "Random", 2: "Spear", 3: "Hammer"}
"""Names of the weapons on the ground, by their numbers in the observation."""


class Missing(types.ModuleType):
    """Replaces a module of the tournament that an exported agent does not need. Its second argument
    is the error message for a name that the module lacks.
    """

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise ModuleNotFoundError((self.__doc__ or WANTS_CHECKOUT).format(name))


class Box:
    """Replaces gymnasium's `Box`, because gymnasium takes a second to load."""

    def __init__(self, low: float, high: float, size: int) -> None:
        import numpy as np

        self.shape, self.dtype = (size,), np.dtype(np.float32)
        self.low, self.high = (np.full(size, bound, np.float32) for bound in (low, high))

    def sample(self) -> Any:
        import numpy as np

        return np.random.uniform(self.low, self.high).astype(self.dtype)

    def contains(self, x: Any) -> bool:
        return len(x) == len(self.low) and all(self.low <= x) and all(x <= self.high)


class Sections:
    """Names the parts of an observation, as the original game's `obs_helper` does."""

    def __init__(self) -> None:
        self.sections: dict[str, tuple[int, int]] = {}
        size = 0
        for who in ("player", "opponent"):
            for name, width in PLAYER.items():
                self.sections[f"{who}_{name}"] = (size, size + width)
                size += width
        self.size = size

    def get_section(self, obs: Any, name: str) -> Any:
        first, end = self.sections[name]
        return obs[first:end]

    def zeros(self) -> Any:
        import numpy as np

        return np.zeros(self.size)


class Keys:
    """Names the ten keys, as the original game's `act_helper` does."""

    def __init__(self) -> None:
        self.sections = {name: index for index, name in enumerate(KEYS)}

    def zeros(self) -> Any:
        import numpy as np

        return np.zeros(len(KEYS))

    def press_keys(self, keys: Any, action: Any = None) -> Any:
        """Returns `action` (by default without keys) with these keys pressed."""
        action = self.zeros() if action is None else action
        for key in [keys] if isinstance(keys, str) else keys:
            action[self.sections[key.lower()]] = 1
        return action


class Env:
    """Replaces the original game's environment, and has only the newest observation."""

    def __init__(self) -> None:
        self.obs_helper, self.act_helper = Sections(), Keys()
        self.observation_space, self.action_space = Box(-100.0, 100.0, 64), Box(0.0, 1.0, len(KEYS))
        self.unwrapped = self
        self.seen: Any = self.obs_helper.zeros()

    def get_spawner_info(self) -> list[list[Any]]:
        """Lists the weapons on the ground with their positions."""
        found = []
        for number in (1, 2, 3, 4):
            x, y, kind = self.obs_helper.get_section(self.seen, f"player_spawner_{number}").tolist()
            if round(kind) in SPAWNED:
                found.append([SPAWNED[round(kind)], (x, y)])
        return found

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(WANTS_CHECKOUT.format(f"env.{name}"))


class Agent:
    """Replaces the original game's base class."""

    def __init__(self, file_path: Any = None) -> None:
        self.file_path = self._gdown() if file_path is None else file_path
        self.initialized = False

    def get_env_info(self, env: Any) -> None:
        self.obs_helper, self.act_helper = env.obs_helper, env.act_helper
        self.observation_space, self.action_space = env.observation_space, env.action_space
        self.env = env
        self._initialize()
        self.initialized = True

    def _gdown(self) -> Any:
        return None

    def _initialize(self) -> None:
        pass

    def save(self, file_path: str) -> None:
        pass

    def reset(self) -> None:
        pass

    def get_num_timesteps(self) -> int:
        return 0


class Refusal(importlib.abc.MetaPathFinder):
    """Refuses imports that would fail in the tournament.

    For a package that the tournament has but this Python lacks, the error says where to install it.
    """

    def __init__(self, has_checkout: bool) -> None:
        self.has_checkout = has_checkout

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        importer = sys._getframe(1)
        while importer.f_back and "importlib" in importer.f_globals.get("__name__", ""):
            importer = importer.f_back
        top = name.partition(".")[0]
        if importer.f_globals.get("__name__") != "my_agent" or top in sys.stdlib_module_names:
            return
        if top in OWN and self.has_checkout:
            return
        if top in OWN:
            raise ModuleNotFoundError(WANTS_CHECKOUT.format(name))
        if top not in PACKAGES.split():
            raise ModuleNotFoundError(f"{name} is not in the tournament's requirements.txt")
        if path is None and not any(
            finder.find_spec(name, None) for finder in sys.meta_path if finder is not self
        ):
            raise ModuleNotFoundError(
                f"the tournament has {name} and this Python has not: install it in {sys.executable}"
            )


def of_checkout(folder: str) -> Any:
    """Loads the original game's environment. During the load the checkout is the working directory,
    because the original game looks there for its pictures.
    """
    own = os.getcwd()
    sys.path.insert(0, folder)
    os.chdir(folder)
    import environment.environment as original

    original.Player.load_assets = lambda self: None  # it would download files
    env = original.WarehouseBrawl()
    os.chdir(own)
    return env


def stand_in() -> Env:
    """Makes an environment without the original game's code. For this it installs a module
    `environment.agent` with `Agent` and the common names that `from environment.agent import *`
    provides.
    """
    import numpy

    package = types.ModuleType("environment")
    module: Any = Missing("environment.agent")
    package.__path__, module.Agent = [], Agent
    for common in (os, math, random, json, numpy, functools):
        setattr(module, common.__name__, common)
    module.np, module.partial, module.defaultdict = (
        numpy,
        functools.partial,
        collections.defaultdict,
    )
    module.Enum, module.auto = enum.Enum, enum.auto
    module.dataclass, module.field = dataclasses.dataclass, dataclasses.field
    for name in ("Any", "Callable", "Dict", "Generic", "List", "Optional", "Tuple", "Type"):
        setattr(module, name, getattr(typing, name))
    gdown = Missing("gdown", "gdown.{} has no network here: put the data next to my_agent.py")
    sys.modules |= {"environment": package, "environment.agent": module, "gdown": gdown}
    return Env()


def loaded(file: str, env: Any) -> Any:
    """Runs a file and returns its agent, ready to play. The agent's class is `SubmittedAgent`. If
    the file has no such class, the agent's class is the last class that derives from `Agent`.
    """
    spec = importlib.util.spec_from_file_location("my_agent", file)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    sys.modules["my_agent"] = module
    spec.loader.exec_module(module)
    found = getattr(module, "SubmittedAgent", None) or next(
        (
            value
            for value in reversed(list(vars(module).values()))
            if isinstance(value, type) and issubclass(value, Agent) and value is not Agent
        ),
        None,
    )
    if found is None:
        raise LookupError("it has no class SubmittedAgent")
    agent = found()
    if callable(agent):
        raise TypeError(
            "its SubmittedAgent can be called, and the tournament would: take out __call__"
        )
    agent.get_env_info(env)
    return agent


def main(file: str, checkout: str) -> None:
    """Plays until the input ends. `checkout` is a folder, or ""."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the agent's own output goes to stderr
    import numpy as np

    sys.meta_path.insert(0, Refusal(bool(checkout)))
    env = of_checkout(checkout) if checkout else stand_in()
    began = time.perf_counter()
    agent = loaded(file, env)
    print(json.dumps({"start_seconds": time.perf_counter() - began}), file=answers, flush=True)
    for line in sys.stdin:
        seen = np.array(json.loads(line))
        if isinstance(env, Env):
            env.seen = seen.copy()
        began = time.perf_counter()
        action = agent.predict(seen)
        ms = (time.perf_counter() - began) * 1000.0
        answer = {"action": np.asarray(action, float).tolist(), "ms": ms}
        print(json.dumps(answer), file=answers, flush=True)

"""Lets the `SubmittedAgent` of a file play as in the tournament, in one process a match.

    python -I ai2_seat.py FILE [CHECKOUT]

It needs Python 3.10 and numpy. The file may import what the tournament's environment has, if this
Python has it too, and nothing else. With a checkout of the tournament's repository it meets the
original's environment, else a stand-in for what most agents ask of it. The first line of output is
{"start_seconds": …}; then it reads an observation of the original a line, a JSON list, and answers
each with {"action": […], "ms": …}.
"""

import importlib.abc
import importlib.util
import json
import os
import sys
import time
import types
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
"""What the tournament's requirements.txt installs, under the names that a file imports."""
OWN = ("environment", "user", "server")
"""The tournament's own packages."""
KEYS = ("w", "a", "s", "d", "space", "h", "l", "j", "k", "g")
PARTS = (
    *(("pos", 2), ("vel", 2), ("facing", 1), ("grounded", 1), ("aerial", 1), ("jumps_left", 1)),
    *(("state", 1), ("recoveries_left", 1), ("dodge_timer", 1), ("stun_frames", 1), ("damage", 1)),
    *(("stocks", 1), ("move_type", 1), ("weapon_type", 1), *((f"spawner_{n}", 3) for n in "1234")),
    *(("moving_platform_pos", 2), ("moving_platform_vel", 2)),
)
"""An observation's sections for each of the players, and how many numbers each has."""


class Helper:
    """Finds numbers of an observation, or keys of an action, by name."""

    def __init__(self, sections: Any) -> None:
        self.sections, self.size = {}, 0
        for name, length in sections:
            self.sections[name] = (self.size, self.size + length)
            self.size += length

    def zeros(self) -> Any:
        import numpy as np

        return np.zeros(self.size)

    def get_section(self, obs: Any, name: str) -> Any:
        return obs[slice(*self.sections[name])]

    def press_keys(self, keys: Any, action: Any = None) -> Any:
        action = self.zeros() if action is None else action
        for key in [keys] if isinstance(keys, str) else keys:
            action[self.sections[key.lower()][0]] = 1
        return action


class Env:
    """What agents ask the original's environment for; the spaces need gymnasium."""

    def __init__(self) -> None:
        players = ("player", "opponent")
        self.obs_helper = Helper((f"{who}_{part}", n) for who in players for part, n in PARTS)
        self.act_helper = Helper((key, 1) for key in KEYS)
        self.seen: Any = self.obs_helper.zeros()
        if importlib.util.find_spec("gymnasium"):
            from gymnasium import spaces

            self.observation_space = spaces.Box(-20.0, 20.0, (self.obs_helper.size,))
            self.action_space = spaces.Box(0.0, 1.0, (len(KEYS),))

    def get_spawner_info(self) -> Any:
        """The weapons that lie on the stage: name and place."""
        rows = [self.obs_helper.get_section(self.seen, f"player_spawner_{n}") for n in "1234"]
        names = {1: "Random", 2: "Spear", 3: "Hammer"}
        return [[names[row[2]], tuple(row[:2])] for row in rows if row[2] in names]


class Agent:
    """What a file meets of the original's base class."""

    def __init__(self, file_path: Any = None) -> None:
        self.file_path = self._gdown() if file_path is None else file_path
        self.initialized = False

    def get_env_info(self, env: Any) -> None:
        self.obs_helper, self.act_helper = env.obs_helper, env.act_helper
        self.observation_space = getattr(env, "observation_space", None)
        self.action_space = getattr(env, "action_space", None)
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


class Refusal(importlib.abc.MetaPathFinder):
    """Refuses the file what the tournament has not, and tells what is missing here alone."""

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
            raise ModuleNotFoundError(
                f"{name} is the tournament's own code: name a checkout with --game ai2:FOLDER"
            )
        if top not in PACKAGES.split():
            raise ModuleNotFoundError(f"{name} is not in the tournament's requirements.txt")
        if path is None and not any(
            finder.find_spec(name, None) for finder in sys.meta_path if finder is not self
        ):
            raise ModuleNotFoundError(
                f"the tournament has {name} and this Python has not: install it in {sys.executable}"
            )


def of_checkout(folder: str) -> Any:
    """The original's environment, which loads its pictures from the working directory."""
    sys.path.insert(0, folder)
    os.chdir(folder)
    import environment.environment as original

    original.Player.load_assets = lambda self: None  # a download
    return original.WarehouseBrawl()


def stand_in() -> Any:
    """An environment without the original's code."""
    for name in ("environment", "environment.agent"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules["environment.agent"].Agent = Agent  # type: ignore[attr-defined]
    return Env()


def main(file: str, checkout: str = "") -> None:
    """Plays until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the agent prints
    import numpy as np

    sys.meta_path.insert(0, Refusal(bool(checkout)))
    env = of_checkout(checkout) if checkout else stand_in()
    began = time.perf_counter()
    spec = importlib.util.spec_from_file_location("my_agent", file)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["my_agent"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    agent = module.SubmittedAgent()
    if callable(agent):
        sys.exit("its SubmittedAgent can be called, and the tournament would: take out __call__")
    agent.get_env_info(env)
    print(json.dumps({"start_seconds": time.perf_counter() - began}), file=answers, flush=True)
    for line in sys.stdin:
        seen = np.array(json.loads(line))
        env.seen = seen.copy()
        began = time.perf_counter()
        action = agent.predict(seen)
        ms = (time.perf_counter() - began) * 1000.0
        answer = {"action": np.asarray(action, float).tolist(), "ms": ms}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

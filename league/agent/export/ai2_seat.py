"""Lets the `SubmittedAgent` of a file play as in the tournament, in a process for each match.

    python -I ai2_seat.py FILE [CHECKOUT]

It needs Python 3.10 and numpy. The file may import only those packages of the tournament's
environment that this Python has too. With a checkout of the tournament's repository the agent gets
the original's environment. The first line of output is {"start_seconds": …}. Each line of input is
an observation of the original as a JSON list, and the answer is {"action": […], "ms": …}.
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
"""Modules that the tournament's requirements.txt installs, by the names that a file imports."""
OWN = ("environment", "user", "server")
"""The tournament's own packages."""
WANTS_CHECKOUT = "{} is the tournament's own code: name a checkout with --game ai2:FOLDER"


class Missing(types.ModuleType):
    """Replaces the rest of the tournament's code, which an exported agent does not need."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise ModuleNotFoundError(WANTS_CHECKOUT.format(name))


class Agent:
    """Replaces the original's base class."""

    def __init__(self, file_path: Any = None) -> None:
        self.file_path = self._gdown() if file_path is None else file_path
        self.initialized = False

    def get_env_info(self, env: Any) -> None:
        self.obs_helper = self.act_helper = self.observation_space = self.action_space = env
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
    """Refuses imports that the tournament lacks, and names packages that only this Python lacks."""

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
    """Loads the original's environment, which loads its pictures from the working directory."""
    sys.path.insert(0, folder)
    os.chdir(folder)
    import environment.environment as original

    original.Player.load_assets = lambda self: None  # it would download files
    return original.WarehouseBrawl()


def stand_in() -> Any:
    """Makes an environment without the original's code, for files that only import `Agent`."""
    package = types.ModuleType("environment")
    module: Any = Missing("environment.agent")
    package.__path__, module.Agent = [], Agent
    sys.modules |= {"environment": package, "environment.agent": module}
    return Missing("env")


def main(file: str, checkout: str = "") -> None:
    """Plays until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the agent's own output goes to stderr
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
        began = time.perf_counter()
        action = agent.predict(seen)
        ms = (time.perf_counter() - began) * 1000.0
        answer = {"action": np.asarray(action, float).tolist(), "ms": ms}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""The examples of docs/matchmaker.md run, and name what exists."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from small_league import small_league

from league.security.settings import SecuritySettings
from league.v1 import matchmaker_pb2

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "matchmaker.md").read_text(encoding="utf-8")
SECURITY = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)


def test_the_python_example_runs(tmp_path, capsys):
    example, _ = EXAMPLES
    with small_league(tmp_path) as league:
        league.play(league.open(), 5)
        example = example.replace("127.0.0.1:50051", league.server.address)
        exec(
            compile(
                example.replace("client.ratings():", "client.ratings(Book.TRAIN):"), "docs", "exec"
            ),
            {},
        )
    assert capsys.readouterr().out.startswith("1 ")


def outsider(program: str, folder: Path, **environment: str) -> str:
    """What a program prints that can't import any package of ours."""
    ours = ("league", "matchmaker", "learner", "evaluator")
    alone = f"import sys\nsys.modules.update(dict.fromkeys({ours!r}))\n{program}"
    done = subprocess.run(
        [sys.executable, "-I", "-c", alone],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_reflection_needs_no_package_of_ours(tmp_path):
    _, example = EXAMPLES
    with small_league(tmp_path) as league:
        league.play(league.open(), 5)
        told = outsider(example.replace("127.0.0.1:50051", league.server.address), tmp_path)
    ratings, health = told.replace("}\n{", "}\n\0{").split("\0")
    assert json.loads(ratings)["ratings"][0]["rank"] == 1
    assert json.loads(health) == {"status": "SERVING"}


def test_the_same_with_a_token(tmp_path):
    (example,) = re.findall(r"```python\n(.*?)```", SECURITY, flags=re.DOTALL)
    _, ask = EXAMPLES
    functions = ask[: ask.index("with grpc")]
    with small_league(tmp_path, security=SecuritySettings(tokens=True)) as league:
        league.play(league.open(), 5)
        program = (functions + example).replace("127.0.0.1:50051", league.server.address)
        token = (tmp_path / "tokens" / "read.token").read_text().strip()
        assert '"ratings"' in outsider(program, tmp_path, KUMITE_TOKEN=token)


def test_the_methods_that_are_named_exist():
    service = matchmaker_pb2.DESCRIPTOR.services_by_name["MatchmakerService"]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"MatchmakerService/(\w+)", readme))
    assert named == {"GetRatings"} <= set(service.methods_by_name)

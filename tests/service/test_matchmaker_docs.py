"""The examples of docs/matchmaker.md run, and name what exists."""

import json
import re
from pathlib import Path

from small_league import small_league

from league.v1 import matchmaker_pb2

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "matchmaker.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)


def test_the_python_example_runs(tmp_path, capsys):
    example, _ = EXAMPLES
    with small_league(tmp_path) as league:
        league.play(league.open(), 5)
        example = example.replace("127.0.0.1:50051", league.server.address)
        exec(compile(example.replace("client.ratings():", "client.ratings(Book.TRAIN):"), "docs", "exec"), {})
    assert capsys.readouterr().out.startswith("1 ")


def test_it_can_be_asked_by_reflection_alone(tmp_path, capsys):
    _, example = EXAMPLES
    with small_league(tmp_path) as league:
        league.play(league.open(), 5)
        exec(compile(example.replace("127.0.0.1:50051", league.server.address), "docs", "exec"), {})
    ratings, health = capsys.readouterr().out.replace("}\n{", "}\n\0{").split("\0")
    assert json.loads(ratings)["ratings"][0]["rank"] == 1
    assert json.loads(health) == {"status": "SERVING"}


def test_the_methods_that_are_named_exist():
    service = matchmaker_pb2.DESCRIPTOR.services_by_name["MatchmakerService"]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"MatchmakerService/(\w+)", readme))
    assert named == {"GetRatings"} <= set(service.methods_by_name)

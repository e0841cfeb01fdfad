"""The examples of docs/matchmaker.md run, and name what exists."""

import re
from pathlib import Path

from small_league import small_league

from league.v1 import matchmaker_pb2

PAGE = (Path(__file__).parents[2] / "docs" / "matchmaker.md").read_text(encoding="utf-8")


def test_the_python_example_runs(tmp_path, capsys):
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    with small_league(tmp_path) as league:
        league.play(league.open(), 5)
        example = example.replace("127.0.0.1:50051", league.server.address)
        exec(compile(example.replace("client.ratings():", "client.ratings(Book.TRAIN):"), "docs", "exec"), {})
    assert capsys.readouterr().out.startswith("1 ")


def test_the_methods_it_names_exist():
    service = matchmaker_pb2.DESCRIPTOR.services_by_name["MatchmakerService"]
    named = set(re.findall(r"MatchmakerService/(\w+)", PAGE))
    assert named <= set(service.methods_by_name)
    assert len(named) >= 2

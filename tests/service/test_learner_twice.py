"""Two learners of one name, as real processes: the newer one takes over, the older one stops and
says why.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from learner_process import learners, matchmaker
from waiting import wait_for

from league.errors import Fenced
from league.rpc.client import MatchmakerClient
from matchmaker.tools.fsck import fsck


def steps_of(client: MatchmakerClient) -> tuple[int, int]:
    """Incarnation of the learner that is at work, and its step; zeros before there is one."""
    found = [
        (one.incarnation, one.step)
        for one in client.status().workers
        if one.worker == "learner-main"
    ]
    return max(found, default=(0, 0))


@pytest.mark.slow
@pytest.mark.parametrize(
    "folders", [("one", "one"), ("one", "other")], ids=["one run folder", "two"]
)
def test_the_second_of_one_name_takes_over_and_the_first_stops(
    tmp_path: Path, folders: tuple[str, str]
) -> None:
    first_folder, second_folder = (tmp_path / name for name in folders)
    for folder in {first_folder, second_folder}:
        folder.mkdir()
    flags = ("--set", "learner.steps=100_000_000", "--name", "main")
    with (
        matchmaker(tmp_path) as server,
        MatchmakerClient(server.address, wait_seconds=5) as client,
        learners(first_folder) as begin,
        learners(second_folder) as begin_again,
    ):
        first = begin(server.address, *flags)
        older, _ = wait_for(lambda: (found := steps_of(client))[1] > 2000 and found)
        second = begin_again(server.address, *flags)
        assert first.wait() == Fenced.exit_code
        assert "Traceback" not in (first_folder / "learner.log").read_text()
        newer, step = wait_for(lambda: (found := steps_of(client))[0] > older and found)
        wait_for(lambda: steps_of(client)[1] > step + 500)
        assert steps_of(client)[0] == newer, "the older one does not come back"
        assert second.poll() is None
        with pytest.raises(Fenced):
            client.acquire_matches(older, 1, "league")
        second.terminate()
        assert second.wait() == 0
        assert "Traceback" not in (second_folder / "learner.log").read_text()
    assert fsck(tmp_path / "league.db")[0] == []

"""The supervisor draws training curves in another process, regularly and at the end."""

import time

from torch.utils.tensorboard import SummaryWriter

from league.cluster.curve_drawer import CurveDrawer
from league.runs.folder import CURVES


def write_run(path):
    (path / "run.json").write_text('{"format": 1}')
    with SummaryWriter(str(path / "learner-main" / "tensorboard")) as writer:
        writer.add_scalar("loss/value", 1.0, 64)


def until_drawn(drawer, path, seconds=60):
    limit = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < limit
        drawer.tick()
        time.sleep(0.02)


def test_it_draws_when_due_and_once_more_at_the_end(tmp_path):
    drawer = CurveDrawer(tmp_path, minutes=0.001)
    drawer.start_last()
    assert drawer.wait(60) == []  # nothing is there to draw yet
    write_run(tmp_path)
    until_drawn(drawer, tmp_path / CURVES)
    (tmp_path / CURVES).unlink()
    drawer.start_last()
    assert drawer.wait(60) == [tmp_path / CURVES]
    assert (tmp_path / CURVES).exists()


def test_it_gives_up_when_there_is_no_time_and_never_draws_with_0(tmp_path):
    write_run(tmp_path)
    hurried = CurveDrawer(tmp_path, minutes=10)
    hurried.start_last()
    assert hurried.wait(0.0) == []
    silent = CurveDrawer(tmp_path, minutes=0)
    silent.tick()
    silent.start_last()
    assert silent.wait(5) == []
    assert not (tmp_path / CURVES).exists()

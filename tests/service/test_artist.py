"""The supervisor's drawing of training curves: a process beside the run, now and then and at the
end.
"""

import time

from torch.utils.tensorboard import SummaryWriter

from league.cluster.artist import FILE, CurveArtist


def write_run(path):
    (path / "run.json").write_text('{"format": 1}')
    with SummaryWriter(str(path / "learner-main" / "tensorboard")) as writer:
        writer.add_scalar("loss/value", 1.0, 64)


def until_drawn(artist, path, seconds=60):
    limit = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < limit
        artist.tick()
        time.sleep(0.02)


def test_it_draws_when_due_and_once_more_at_the_end(tmp_path):
    artist = CurveArtist(tmp_path, minutes=0.001)
    artist.begin_last()
    assert artist.wait(60) == []  # nothing is there to draw yet
    write_run(tmp_path)
    until_drawn(artist, tmp_path / FILE)
    (tmp_path / FILE).unlink()
    artist.begin_last()
    assert artist.wait(60) == [tmp_path / FILE]
    assert (tmp_path / FILE).exists()


def test_it_gives_up_when_there_is_no_time_and_never_draws_with_0(tmp_path):
    write_run(tmp_path)
    hurried = CurveArtist(tmp_path, minutes=10)
    hurried.begin_last()
    assert hurried.wait(0.0) == []
    silent = CurveArtist(tmp_path, minutes=0)
    silent.tick()
    silent.begin_last()
    assert silent.wait(5) == []
    assert not (tmp_path / FILE).exists()

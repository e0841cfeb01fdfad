"""What commands print of others' words."""

import pytest

from league.cli.output import print_pairs, print_table, when
from league.cli.status import event_line
from league.players import Event

FORGED = "it failed\n9\t2026-01-01\toperator_action\tbob\x1b[2K"
PLAIN = "it failed 9 2026-01-01 operator_action bob [2K"


def test_a_workers_words_make_no_line_of_ours_and_steer_no_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert event_line(
        Event(position=1, at=0.0, kind="leases_released", text=FORGED, data_json="")
    ).endswith(PLAIN)
    print_table("Workers", "worker activity", [("learner-main", FORGED)])
    print_pairs([("doing", FORGED)])
    assert capsys.readouterr().out.splitlines() == [
        "worker\tactivity",
        f"learner-main\t{PLAIN}",
        f"doing\t{PLAIN}",
    ]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, ""), (1.0, "1970-01-01 00:00:01+00:00"), (1.8e12, "1.8e+12 s"), (1e300, "1e+300 s")],
)
def test_every_time_can_be_printed(seconds: float, text: str) -> None:
    assert when(seconds) == text

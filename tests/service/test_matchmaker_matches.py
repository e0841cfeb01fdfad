"""Matches are handed out and why: categories, seats, pairings, held-out players, draws made
again.
"""

import json
from dataclasses import replace
from itertools import chain, combinations, pairwise

import grpc
import pytest
from scipy import stats
from small_league import bot, live, played, report, small_league, snapshot

from league.errors import AlreadyExists, InvalidInput, InvalidName, LeagueError, NotFound, Refused
from league.players import Book, Pairing, PlayerKind, PlayerState, Role
from league.v1 import matchmaker_pb2 as m
from matchmaker import limits
from matchmaker.sampling.draw import Stream, draw_table, draw_table_of, draws
from matchmaker.state.books import Books


def test_registration_is_repeatable_and_guards_names(league):
    again, retired = league.client.register_players([bot("based"), snapshot(1000)])
    assert (again[1].digest, retired) == (snapshot(1000).digest, [])
    assert again[0].created_at == league.clock.now()
    with pytest.raises(AlreadyExists, match="main@1000"):
        league.client.register_players([snapshot(1000, digest="0" * 64)])
    with pytest.raises(NotFound, match="parent 'nobody' of main@3000"):
        league.client.register_players([snapshot(3000, parent="nobody")])


@pytest.mark.parametrize(
    ("player", "error", "says"),
    [
        (bot("No Such Name"), InvalidName, "can't name a player"),
        (snapshot(3000, digest="../../etc/passwd"), InvalidName, "no sha256"),
        (replace(snapshot(3000), step=4), InvalidInput, "must agree"),
        (snapshot(3000, game="chess"), InvalidInput, "this league 'brawl'"),
        (snapshot(3000, kind=PlayerKind.BOT, digest=""), InvalidInput, "snapshot's name"),
        (snapshot(3000, card_json="{"), InvalidInput, "no JSON"),
        (snapshot(3000, card_json='"' + "x" * 70_000 + '"'), InvalidInput, "bytes"),
        (snapshot(3000, state=PlayerState.RETIRED), InvalidInput, "active"),
    ],
)
def test_bad_players_are_refused_at_the_door(league, player, error, says):
    before = league.client.players()
    with pytest.raises(error, match=says):
        league.client.register_players([bot("other"), player])
    assert league.client.players() == before


def test_the_learner_meets_every_category_in_its_share(league):
    incarnation = league.open()
    matches = league.client.acquire_matches(incarnation, 1000, "league")
    counts = dict.fromkeys(("snapshots", "constant", "based", "random"), 0)
    for match in matches:
        counts[match.category] += 1
        assert match.seats[match.learner_seat].name == "main"
        expected = match.category if match.category != "snapshots" else match.opponent.name
        assert match.opponent.name == expected
        assert match.book is Book.TRAIN
    assert stats.chisquare(list(counts.values()), [700, 50, 150, 100]).pvalue > 1e-3
    assert stats.binomtest(sum(match.learner_seat for match in matches), 1000).pvalue > 1e-3
    assert [match.ordinal for match in matches] == list(range(1, 1001))
    assert (
        len({match.seed for match in matches})
        == len({match.lease_token for match in matches})
        == 1000
    )
    assert not any(seat.card_json for match in matches for seat in match.seats)


def test_an_empty_categorys_share_returns_when_it_fills(tmp_path):
    with small_league(tmp_path, snapshots=()) as league:
        incarnation = league.open()
        early = league.client.acquire_matches(incarnation, 300, "league")
        assert {match.category for match in early} == {"constant", "based", "random"}
        league.client.register_players([snapshot(1000)])
        late = league.client.acquire_matches(incarnation, 300, "league")
        assert stats.binomtest(sum(m.category == "snapshots" for m in late), 300, 0.7).pvalue > 1e-3


def test_a_mix_without_players_means_self_play(tmp_path):
    mixes = {"past": {"snapshots": 1.0, "clone": 1.0}, "mirror": {"self": 1.0}}
    with small_league(tmp_path, snapshots=(), mixes=mixes) as league:
        incarnation = league.open()
        for mix in mixes:
            for match in league.client.acquire_matches(incarnation, 5, mix):
                assert match.category == "self"
                assert [seat.name for seat in match.seats] == ["main", "main"]


def test_held_out_and_retired_players_are_never_drawn(tmp_path):
    mixes = {"league": {"snapshots": 1.0}}
    with small_league(tmp_path, snapshots=(), mixes=mixes, max_saved=2) as league:
        league.client.register_players(
            [bot("secret", held_out=True), snapshot(1), snapshot(2, held_out=True)]
        )
        _, retired = league.client.register_players([snapshot(3), snapshot(4)])
        assert retired == ["main@1", "main@2"]
        league.client.register_players([snapshot(5, milestone=True)])
        matches = league.client.acquire_matches(league.open(), 200, "league")
        assert {match.opponent.name for match in matches} == {"main@4", "main@5"}
        states = {p.name: p.state for p in league.client.players(kinds=[PlayerKind.SNAPSHOT])}
        assert states["main@1"] is PlayerState.RETIRED
        assert len(states) == 5


def test_several_matches_of_a_draw_are_in_a_row_and_can_be_drawn_again(tmp_path):
    with small_league(
        tmp_path, (1000, 2000, 3000), matches_per_draw=4, within_snapshots="uniform"
    ) as league:
        incarnation = league.open()
        matches = []
        while len(matches) < 400:
            matches += league.client.acquire_matches(incarnation, 1 + len(matches) % 7, "league")
            report(league, incarnation, played(matches[-1]))
        drawn = {}
        for match in matches:
            drawn.setdefault(match.ordinal // 4, []).append(match)
        for group in drawn.values():
            assert len({(match.category, match.opponent.name) for match in group}) == 1
            assert len({match.seed for match in group}) == len(group)
        names = [group[0].opponent.name for group in drawn.values()]
        assert len(set(names)) >= 5
        assert sum(one == other for one, other in pairwise(names)) < 60, (
            "of 100, where each has its own draw"
        )
        assert {match.learner_seat for match in matches} == {0, 1}
        league.check()


def test_a_mix_that_names_a_held_out_bot_is_refused(tmp_path):
    mixes = {"league": {"self": 1.0}, "peek": {"self": 1.0, "secret": 0.0}}
    with small_league(tmp_path, snapshots=(), mixes=mixes) as league:
        league.client.register_players([bot("secret", held_out=True)])
        incarnation = league.open()
        with pytest.raises(InvalidInput, match=r"'peek' .*secret"):
            league.client.acquire_matches(incarnation, 1, "peek")
        assert league.client.acquire_matches(incarnation, 1, "league")


def test_milestones_never_retire(tmp_path):
    with small_league(tmp_path, snapshots=(), max_saved=2) as league:
        league.client.register_players([snapshot(1, milestone=True), snapshot(2), snapshot(3)])
        league.client.register_players([snapshot(3, milestone=True), snapshot(4), snapshot(5)])
        active = league.client.players(kinds=[PlayerKind.SNAPSHOT], states=[PlayerState.ACTIVE])
        assert [p.name for p in active] == ["main@1", "main@3", "main@5"]


def test_who_is_in_the_nash_support_retires_last_also_after_a_restart(tmp_path):
    """Three that beat one another in a ring stay, with room for four; of the others the oldest
    goes first.
    """
    ring = ("main@1", "main@3", "main@4")

    def outcome(match):
        ranks = [ring.index(p.name) if p.name in ring else None for p in match.seats]
        if None in ranks:
            return float(ranks[0] is not None) if ranks != [None, None] else 0.5
        return 1.0 if (ranks[0] - ranks[1]) % 3 == 1 else 0.0

    settings = {"snapshots": (), "max_saved": 4}
    with small_league(tmp_path, **settings) as league:
        league.client.register_players([snapshot(step) for step in range(1, 5)])
        assert not league.server.analyse()  # no match was played
        worker = league.client.open_incarnation("evaluator", "", 0, 0, ()).number
        names = [f"main@{step}" for step in range(1, 5)]
        pairings = [
            Pairing(player=one, opponent=other, pairs=20, book=Book.EVAL, seed=1)
            for one, other in combinations(names, 2)
        ]
        for match in league.client.acquire_pairings(worker, pairings):
            report(league, worker, played(match, outcome(match)))
        assert league.server.analyse()
        assert not league.server.analyse()  # nothing new since
        _, retired = league.client.register_players([snapshot(5)])
        assert retired == ["main@2"]
        league.check()
    with small_league(tmp_path, **settings) as league:
        for step, gone in ((6, "main@5"), (7, "main@6")):
            _, retired = league.client.register_players([snapshot(step)])
            assert retired == [gone]
        league.client.register_players([snapshot(7, milestone=True)])
        _, retired = league.client.register_players([snapshot(8)])
        assert retired == ["main@1"], (
            "a lineage keeps no more than it may, with its support or without"
        )


@pytest.mark.parametrize("rule", ["recent", "pfsp_hard"])
def test_why_lets_the_draw_be_made_again(tmp_path, rule):
    with small_league(tmp_path, (1000, 2000, 3000), within_snapshots=rule) as league:
        incarnation = league.open()
        league.play(incarnation, 60)
        league.play(incarnation, 20, outcome=lambda match: 0.5)
        for match in league.client.acquire_matches(incarnation, 20, "league"):
            why = json.loads(league.client.match(match.match_id).why_json)
            assert why["rule"] == rule
            assert why["log_position"] == 80
            assert why["policy_hash"] == league.server.league.settings.policy_hash()
            table = draw_table_of(
                json.dumps({"shares": why["shares"], "candidates": why["candidates"]})
            )
            (again,) = draws(
                table.shares, table.within, Stream(why["draw_seed"]), [why["draw_ordinal"]]
            )
            assert (again.category, again.opponent) == (match.category, match.opponent.name)
            assert (again.learner_seat, again.match_seed) == (match.learner_seat, match.seed)
            assert again.probability == why["probability"]


def test_the_candidates_weights_follow_from_the_log(league):
    incarnation = league.open()
    league.play(incarnation, 100)
    match = league.client.acquire_matches(incarnation, 1, "league")[0]
    why = json.loads(league.client.match(match.match_id).why_json)
    league.play(incarnation, 50, outcome=lambda match: 0.5)
    with league.server.store.read() as reader:
        players = {player.name: player for player in reader.players()}
        tables = Books.at(reader, why["event_position"]).tables
    again = draw_table(league.server.league.settings, players["main"], "league", players, tables)
    assert json.loads(again.body_json)["candidates"] == why["candidates"]


def test_an_expensive_draw_table_lasts_while_the_league_grows(league, monkeypatch):
    monkeypatch.setattr(limits, "DRAW_PLAYER_SECONDS", 0.1)
    incarnation = league.open()

    def table():
        """The position in the log at which the table of the next draw was computed."""
        (match,) = league.client.acquire_matches(incarnation, 1, "league")
        return json.loads(league.client.match(match.match_id).why_json)["event_position"]

    first = table()
    league.client.register_players([snapshot(9000)])
    league.client.open_incarnation("learner-other", "")
    assert table() == first
    league.clock.advance(limits.LONGEST_DRAW_SECONDS)
    second = table()
    assert second > first
    league.client.quarantine("main@9000", "it is a test", "operator")
    assert table() > second, "a player in quarantine is not drawn any more"


def test_every_learner_has_its_own_shares(league):
    """The shares of mains come first, whichever learner reported last."""
    league.client.register_players([replace(live("hunter"), role=Role.MAIN_EXPLOITER)])
    main, hunter = league.open(), league.client.open_incarnation("learner-hunter", "hunter").number
    league.client.acquire_matches(main, 20, "league")
    league.client.acquire_matches(hunter, 10, "league")
    league.client.heartbeat(main, 1, 1, "league")
    league.client.heartbeat(hunter, 1, 1, "league")
    for last in (main, hunter):
        league.clock.advance(1.0)
        league.client.heartbeat(last, 2, 1, "league")
        told = {}
        for share in league.client.status().shares:
            told.setdefault(share.player, []).append(share)
            assert share.mix == "league"
        assert list(told) == ["main", "hunter"]
        for shares, matches in zip(told.values(), (20, 10), strict=True):
            assert sum(share.matches for share in shares) == matches
            assert sum(share.realised for share in shares) == pytest.approx(1.0)
            assert sum(share.configured for share in shares) == pytest.approx(1.0)


def test_realised_shares_stand_beside_configured_ones(league):
    incarnation = league.open()
    matches = league.client.acquire_matches(incarnation, 200, "league")
    league.client.heartbeat(
        incarnation, 1, 10, "league", "rollout", {"rate/frames_per_second": 3.0}
    )
    status = league.client.status()
    shares = {share.category: share for share in status.shares}
    assert shares["snapshots"].configured == pytest.approx(0.7)
    assert shares["snapshots"].expected == pytest.approx(0.7)
    assert sum(share.realised for share in status.shares) == pytest.approx(1.0)
    assert shares["based"].matches == sum(match.category == "based" for match in matches)
    worker = status.workers[0]
    assert (worker.worker, worker.step, worker.activity) == ("learner-main", 10, "rollout")
    assert worker.metrics == {"rate/frames_per_second": 3.0}
    assert (status.open_leases, worker.open_leases, status.game) == (200, 200, "brawl")


def test_expected_shares_leave_out_who_is_not_there(tmp_path):
    mixes = {"league": {"self": 0.3, "exploiters": 0.4, "based": 0.3}}
    with small_league(tmp_path, mixes=mixes) as league:
        incarnation = league.open()
        for mix in ("league", "nowhere"):
            league.client.heartbeat(incarnation, 1, 10, mix)
            found = {share.category: share for share in league.client.status().shares}
            if mix == "league":
                assert found["exploiters"].configured == pytest.approx(0.4)
                assert {name: one.expected for name, one in found.items()} == {
                    "self": pytest.approx(0.5),
                    "exploiters": 0.0,
                    "based": pytest.approx(0.5),
                }
            else:
                assert found == {}


def test_pairings_swap_seats_on_common_seeds(league):
    incarnation = league.client.open_incarnation("evaluator-0").number
    pairings = [
        Pairing(player="main@2000", opponent=name, pairs=3, book=Book.EVAL, seed=11)
        for name in ("based", "main@1000")
    ]
    matches = league.client.acquire_pairings(incarnation, pairings)
    assert len(matches) == 12
    for first, second in zip(matches[::2], matches[1::2], strict=True):
        assert [s.name for s in first.seats] == [s.name for s in reversed(second.seats)]
        assert first.seed == second.seed
    assert [match.seed for match in matches[:6]] == [match.seed for match in matches[6:]]
    assert len({match.seed for match in matches}) == 3
    assert {(match.learner_seat, match.book, match.category) for match in matches} == {
        (-1, Book.EVAL, "gauntlet")
    }


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"opponent": "main@2000"}, InvalidInput, "itself"),
        ({"opponent": "nobody"}, NotFound, "register"),
        ({"opponent": "main"}, Refused, "fixed weights"),
        ({"book": Book.TRAIN}, InvalidInput, "eval and greedy"),
    ],
)
def test_bad_pairings_are_refused(league, change, error, says):
    incarnation = league.client.open_incarnation("evaluator-0").number
    fields = {
        "player": "main@2000",
        "opponent": "based",
        "pairs": 1,
        "book": Book.EVAL,
        "seed": 1,
    } | change
    with pytest.raises(error, match=says):
        league.client.acquire_pairings(incarnation, [Pairing(**fields)])


def test_asking_wrongly_is_answered_in_a_sentence(league):
    incarnation = league.open()
    evaluator = league.client.open_incarnation("evaluator-0").number
    client = league.client
    for error, says, call, *arguments in (
        (NotFound, "no mix 'legue'", client.acquire_matches, incarnation, 1, "legue"),
        (InvalidInput, "count = 0", client.acquire_matches, incarnation, 0, "league"),
        (NotFound, "no incarnation 99", client.acquire_matches, 99, 1, "league"),
        (Refused, "trains no player", client.acquire_matches, evaluator, 1, "league"),
        (InvalidInput, "can't name a worker", client.open_incarnation, "Bad Worker"),
        (NotFound, "no player 'ghost'", client.open_incarnation, "learner-x", "ghost"),
        (InvalidInput, "only live", client.open_incarnation, "learner-x", "based"),
        (InvalidInput, "checkpoint_log_position", league.open, 7),
        (NotFound, "no match zzz", client.match, "zzz"),
    ):
        with pytest.raises(error, match=says) as caught:
            call(*arguments)
        assert type(caught.value) is error


def test_a_match_is_found_by_the_beginning_of_its_id(league):
    matches = league.client.acquire_matches(league.open(), 40, "league")
    # 40: several begin with one hexadecimal digit
    ids = sorted(match.match_id for match in matches)
    assert all(league.client.match(match_id).assignment.match_id == match_id for match_id in ids)
    assert league.client.match(ids[0][:20]).assignment.match_id == ids[0]
    twice = next(a[0] for a, b in pairwise(ids) if a[0] == b[0])
    with pytest.raises(InvalidInput, match=twice):
        league.client.match(twice)
    with pytest.raises(NotFound, match="xyz"):
        league.client.match("xyz")


def test_open_leases_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "MAX_OPEN_LEASES", 10)
    with small_league(tmp_path) as league:
        incarnation = league.open()
        league.client.acquire_matches(incarnation, 10, "league")
        with pytest.raises(Refused, match=r"\b10\b"):
            league.client.acquire_matches(incarnation, 1, "league")
        assert league.client.release_matches(incarnation) == 10
        league.client.acquire_matches(incarnation, 1, "league")


def test_a_request_id_is_wanted_and_bound_to_its_request(league):
    stub = league.client._stub
    incarnation = league.open()

    def acquire(request_id, count):
        return stub.AcquireMatches(
            m.AcquireMatchesRequest(
                request_id=request_id, incarnation=incarnation, count=count, mix="league"
            )
        )

    first = acquire("request-1", 4)
    assert acquire("request-1", 4) == first
    assert league.client.status().open_leases == 4
    for request_id, count in (("request-1", 5), ("", 4), ("x" * 81, 4)):
        with pytest.raises(grpc.RpcError) as caught:
            acquire(request_id, count)
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_what_fails_inside_is_told_without_its_details(league, monkeypatch, caplog):
    def broken(*_):
        raise ZeroDivisionError("secret")

    monkeypatch.setattr("matchmaker.acts.assign.draws", broken)
    with pytest.raises(LeagueError, match="failed inside") as caught:
        league.client.acquire_matches(league.open(), 1, "league")
    assert "secret" not in str(caught.value)
    assert "secret" in caplog.text


def test_matches_are_listed_by_player_book_and_category_page_by_page(league):
    incarnation = league.open()
    drawn, _, _ = league.play(incarnation, 30)
    evaluator = league.client.open_incarnation("evaluator-0").number
    pairing = Pairing(player="main@1000", opponent="based", pairs=2, book=Book.EVAL, seed=1)
    clean = league.client.acquire_pairings(evaluator, [pairing])
    report(league, evaluator, *(played(one, 0.5) for one in clean))
    league.client.acquire_matches(incarnation, 3, "league")  # without a result
    newest_first = [one.match_id for one in [*drawn, *clean]][::-1]
    pages, before = [], 0
    while True:
        found, before = league.client.matches(before=before, limit=7)
        pages.append([one.match_id for one in found])
        if not before:
            break
    assert [len(page) for page in pages] == [7, 7, 7, 7, 6]
    assert list(chain.from_iterable(pages)) == newest_first
    (first, *_), _ = league.client.matches("based", "main@1000")
    assert (first.seats, first.book, first.outcome) == (("based", "main@1000"), Book.EVAL, 0.5)
    assert len(league.client.matches("main@1000", "based")[0]) == len(clean)
    assert len(league.client.matches(book=Book.EVAL)[0]) == len(clean)
    of_bot = [one.match_id for one in drawn if one.category == "constant"]
    assert [one.match_id for one in league.client.matches(category="constant")[0]] == of_bot[::-1]
    assert league.client.matches("nobody") == ([], 0)


@pytest.mark.parametrize("wrong", [{"limit": 0}, {"limit": 201}, {"opponent": "based"}])
def test_what_can_not_be_listed_is_refused(league, wrong):
    with pytest.raises(InvalidInput):
        league.client.matches(**wrong)


def test_a_person_is_paired_rated_and_never_evaluated(league):
    person = replace(bot("human"), kind=PlayerKind.HUMAN)
    league.client.register_players([person])
    worker = league.client.open_incarnation("dashboard").number
    pairing = Pairing(player="human", opponent="based", pairs=1, book=Book.EVAL, seed=1)
    first, _ = league.client.acquire_pairings(worker, [pairing])
    report(league, worker, played(first, 1.0))
    assert "human" in [one.player.name for one in league.client.ratings()]
    drawn, _, _ = league.play(league.open(), 200)
    assert "human" not in {one.opponent.name for one in drawn}
    with pytest.raises(Refused, match="human"):
        league.client.request_evaluation("human", ["based"], 4, by="bob")

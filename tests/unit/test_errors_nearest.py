"""What a message proposes for a name that nobody has."""

from __future__ import annotations

from league.errors import nearest

KNOWN = ["based", "main@1000", "main@53248", "main@4902912", "exploiter@99", "main.reference-100"]


def test_a_step_without_a_snapshot_gets_the_nearest_of_its_lineage() -> None:
    for word, found in (
        ("main@99", "main@1000"),
        ("main@49000", "main@53248"),
        ("main@9000000", "main@4902912"),
        ("exploiter@5", "exploiter@99"),
    ):
        assert repr(found) in nearest(word, KNOWN)


def test_other_words_get_the_name_that_looks_alike() -> None:
    assert repr("based") in nearest("bassed", iter(KNOWN))
    assert repr("main@1000") in nearest("mian@1000", iter(KNOWN))
    assert nearest("zzz", KNOWN) == ""

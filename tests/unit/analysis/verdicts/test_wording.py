"""Claims and notes as text."""

import pytest

from mplab.analysis.verdicts.wording import claimed_words, interval_note
from mplab.format.claim import Claim, ClaimedRange, ClaimKind
from mplab.format.experiment import SmallestEffect
from mplab.userfiles.experiments.claims import parse_gain, parse_share, parse_value_range


@pytest.mark.parametrize(
    ("kind", "claimed", "words"),
    [
        ("share", parse_share("76 %"), "share 76 % ± 7.6"),
        ("share", parse_share("0 %"), "share 0 % ± 1"),
        ("gain", parse_gain("-44 %"), "gain −44 % ± 4.4"),
        ("value", parse_value_range("133 ms"), "value 133 ms ± 13"),
        ("gain", parse_gain(["11 %", "49 %"]), "gain 11 to 49 %"),
    ],
)
def test_one_number_is_shown_with_its_tolerance(kind: ClaimKind, claimed: ClaimedRange, words: str) -> None:
    assert claimed_words(Claim(text="a claim", kind=kind, claimed=claimed), SmallestEffect()) == words


@pytest.mark.parametrize(
    ("kind", "claimed", "words"),
    [
        ("value", parse_value_range("60 %"), "relative difference 60 % ± 6"),
        ("share", parse_share(["10 %", "30 %"]), "share of better pairs 10 to 30 %"),
    ],
)
def test_claims_about_pairs_name_their_quantity(kind: ClaimKind, claimed: ClaimedRange, words: str) -> None:
    claim = Claim(text="a claim", kind=kind, claimed=claimed, against=("sptcp-wifi",))
    assert claimed_words(claim, SmallestEffect()) == words


@pytest.mark.parametrize(
    ("without", "verdicts", "note"),
    [
        (0, ["as claimed"], ""),
        (1, ["as claimed", "no data"], "no interval"),
        (2, ["as claimed", "not seen", "not seen"], "2 of 3 without interval"),
    ],
)
def test_findings_without_interval_are_counted(without: int, verdicts: list[str], note: str) -> None:
    assert interval_note(without, verdicts) == note

"""Write claims and their findings as text, for the page, for CSV files and for the terminal."""

from collections.abc import Sequence

from mplab.analysis.text import DASH, number
from mplab.analysis.verdicts.judging import ALL_VERDICTS, VERDICTS, tolerance
from mplab.format.claim import Claim, ClaimedRange
from mplab.format.experiment import SmallestEffect
from mplab.format.finding import ClaimFinding

_KINDS = {
    "gain": "gain",
    "no_difference": "no difference, margin",
    "value": "value",
    "share": "share",
    "trend": "change",
    "correlation": "correlation",
}
_OF_PAIRS = {"value": "relative difference", "share": "share of better pairs"}
_FORMS = {"change": "change", "flat": "no change, margin", "crossover": "crossover at"}


def kind_words(claim: Claim) -> str:
    """Return the quantity of a claim as text: ``gain``, ``change``."""
    if claim.of_pairs:
        return _OF_PAIRS[claim.kind]
    return _FORMS[claim.trend.form] if claim.trend is not None else _KINDS[claim.kind]


def claimed_words(claim: Claim, smallest: SmallestEffect) -> str:
    """Return the claimed range as text: ``gain 11 to 49 %``, ``share 62.2 % ± 6.2``, ``change rising``.

    Args:
        claim: the claim.
        smallest: smallest effect of interest of the experiment, on which the tolerance of one number depends.
    """
    if claim.claimed is None:
        return DASH
    return f"{kind_words(claim)} {_range_words(claim, claim.claimed, tolerance(claim, smallest))}"


def _range_words(claim: Claim, claimed: ClaimedRange, about: float) -> str:
    unit = claimed.unit
    if claimed.word is not None:
        return claimed.word
    if claimed.number is not None:
        return " ".join(word for word in (_plain(claimed.number), unit, f"± {about:.2g}") if word)
    low, high = claimed.low, claimed.high
    if claim.kind == "no_difference" or (claim.trend is not None and claim.trend.form == "flat"):
        return f"±{_plain(high or 0.0)} {unit}"
    if low is not None and high is not None:
        return f"{_plain(low)} to {_plain(high)} {unit}".rstrip()
    word, end = ("at least", low) if low is not None else ("at most", high)
    return f"{word} {_plain(end or 0.0)} {unit}".rstrip()


def estimate_words(finding: ClaimFinding) -> str:
    """Return the estimate of a finding with its unit; a dash without estimate."""
    return f"{_amount(finding, finding.estimate)} {finding.unit}".rstrip() if finding.estimate is not None else DASH


def interval_words(finding: ClaimFinding) -> str:
    """Return the interval of a finding; infinite ends are ``none`` (a crossover that does not exist)."""
    if finding.interval is None:
        return DASH
    return " … ".join("none" if end is None else _amount(finding, end) for end in finding.interval)


def interval_note(without: int, verdicts: Sequence[str]) -> str:
    """Return a note on findings without an interval: ``no interval``, ``2 of 3 without interval``; "" if all have one.

    Args:
        without: number of findings on values without an interval.
        verdicts: verdicts of all findings.
    """
    measured = sum(verdict in VERDICTS for verdict in verdicts)
    if not without:
        return ""
    return "no interval" if without == measured else f"{without} of {measured} without interval"


def _amount(finding: ClaimFinding, value: float) -> str:
    return f"{value:.1f}".replace("-", "−") if finding.unit == "%" else number(value)


def count_words(verdicts: Sequence[str]) -> str:
    """Return the numbers of groups by verdict as text: ``7 as claimed, 2 same direction``; "" for one group."""
    if len(verdicts) < 2:
        return ""
    return ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in ALL_VERDICTS if verdict in verdicts)


def sentence(text: str, verdict: str, verdicts: Sequence[str], *, certain: bool) -> str:
    """Return a claim with its verdict as a line of the terminal.

    Args:
        text: the claim, in words.
        verdict: verdict over all groups.
        verdicts: verdicts of the groups.
        certain: whether ``verdict`` is certain.
    """
    doubt = "?" if verdict in VERDICTS and not certain else ""
    counts = count_words(verdicts)
    return f"{text}: {verdict}{doubt}" + (f" ({counts})" if counts else "")


def _plain(value: float) -> str:
    return f"{value:g}".replace("-", "−")

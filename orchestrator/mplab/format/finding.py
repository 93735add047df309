"""Finding on a claim, in ``report/summary.json`` and in the compact results of the papers."""

from pydantic import Field

from mplab.format.claim import Verdict
from mplab.format.record import Record, Whole

Ends = tuple[float | None, float | None]


class ClaimFinding(Record):
    """The measured quantity of a claim in one group, with the verdict.

    Attributes:
        scenario, link, labels: the group; "" and empty where the finding is about several.
        against: label of the transport with the best value among those in the claim's ``against``; None without
            comparison.
        cells: numbers of cells of the transport, and of the one that it is compared with.
        values: number of values in these cells.
        unit: unit of ``estimate`` and ``interval``.
        estimate: the quantity, such as a gain in percent; None without data, or if there is no crossover.
        interval: 95 % interval of ``estimate`` (90 % for equivalence), in which None is an infinite end. None: it
            cannot be computed.
        verdict: see `mplab.analysis.verdicts.judging`.
        certain: the interval supports the verdict as a whole.
        null: null hypothesis of the test; "" without a test.
        p: p of the test of ``null``; not corrected.
        p_corrected: p corrected for all findings of the run, or of the page.
        confirmed: ``certain`` also after the correction.
        missing: reason of ``no data``, or of ``not measurable here``.
    """

    scenario: str = ""
    link: str = ""
    labels: dict[str, str] = Field(default_factory=dict)
    against: str | None = None
    cells: tuple[Whole, ...] = ()
    values: Whole = 0
    unit: str = ""
    estimate: float | None = None
    interval: Ends | None = None
    verdict: Verdict
    certain: bool = False
    null: str = ""
    p: float | None = None
    p_corrected: float | None = None
    confirmed: bool = False
    missing: str = ""

    @property
    def label_text(self) -> str:
        """Return the values of the labels as text; "" without labels."""
        return " · ".join(self.labels.values())

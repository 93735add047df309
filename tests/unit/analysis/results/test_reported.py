"""Reports of older versions."""

from mplab.analysis.results.reported import SummaryClaim


def test_findings_of_an_older_report_are_left_out() -> None:
    old = {"text": "faster", "found": [{"verdict": "more", "gain": 0.3}]}
    assert SummaryClaim.model_validate(old).found == ()
    new = {"text": "faster", "verdict": "not seen", "found": [{"verdict": "not seen", "cells": [5, 5]}]}
    (finding,) = SummaryClaim.model_validate(new).found
    assert (finding.verdict, finding.cells) == ("not seen", (5, 5))

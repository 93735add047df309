"""Claims that the scenarios of an experiment cannot answer are refused before the run, with file and line."""

from pathlib import Path

import pytest

from mplab.base.errors import InputError
from mplab.lab.catalog import catalog
from mplab.run.hostside.metrics import check_metrics
from mplab.userfiles.experiments.resolve import load_experiment

HEAD = """\
mplab: 1
name: x
transports: [sptcp-wifi, sptcp-lte, mptcp]
links: [baseline]
scenarios: [download, udp-jitter]
claims:
"""


def check(folder: Path, claim: str) -> None:
    file = folder / "x.yaml"
    file.write_text(f"{HEAD}  - {{text: t, transport: mptcp, {claim}}}\n")
    check_metrics(load_experiment(file, catalog=catalog()))


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        ("metric: downlaod_time, value: 1 s", "unknown metric 'downlaod_time'. Did you mean 'download_time'?"),
        (
            "metric: jitter, scenarios: [download, udp-jitter], value: 1 ms",
            "scenario 'download' has no metric 'jitter'",
        ),
        ("metric: download_time, value: 1 kB", "value of download_time: found unit 'kB', allowed: ms, s, min, h"),
        ("metric: download_time, share: 5 %", "'share' needs a metric in percent; download_time is in s"),
        ("metric: download_time, value: 1 s, labels: {site: [wiki]}", "labels: download_time has no label 'site'"),
        (
            "metric: download_time, value: 1 s, pooled_labels: [site]",
            "pooled_labels: download_time has no label 'site'",
        ),
        ("metric: download_time, trend: {change: rising, along: site}", "along: download_time has no label 'site'"),
        ("metric: download_time, trend: {change: rising}", "a trend along links needs two link conditions or more"),
        (
            "metric: network_share, against: [sptcp-wifi, sptcp-lte], gain: 5 %",
            "network_share has no better side: 'against' must name one transport, not 2",
        ),
        (
            "metric: network_share, against: [sptcp-wifi], share: 20 %",
            "the share of better pairs needs a metric with a better side; network_share has none",
        ),
        ("metric: download_time, correlation: {metric: goodputt, r: 0.5}", "unknown metric 'goodputt'"),
    ],
)
def test_a_claim_without_possible_values_is_refused(tmp_path: Path, claim: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        check(tmp_path, claim)
    assert f"{tmp_path / 'x.yaml'}:7: claims[0]: {message}" in str(caught.value)


@pytest.mark.parametrize(
    "claim",
    [
        "metric: download_time, value: 900 ms, labels: {size: [1 MB]}",
        "metric: network_share, share: 69 %, labels: {network: [wifi]}",
        "metric: both_paths_used, against: [mptcp], against_scenario: udp-jitter, scenarios: [download], gain: better",
        "metric: download_time, trend: {change: rising, along: size}",
        "metric: download_time, against: [sptcp-wifi], share: 20 %",
        "metric: download_time, against: [sptcp-wifi], value: 60 %",
        "not_measurable: there is no meter",
    ],
)
def test_a_claim_with_possible_values_is_accepted(tmp_path: Path, claim: str) -> None:
    check(tmp_path, claim)

"""The download scenario on a phone that answers from a list."""

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import pytest

from mplab.base.errors import StepError
from mplab.base.machine import CommandResult
from mplab.drivers.origin.cache import stream_bytes
from mplab.format.sites import APP_HOSTS, FILE_HOST


def report(size: int, url: str = "http://dl.lab/1000", **changes: Any) -> str:
    fields: dict[str, Any] = {
        "exit": 0,
        "status": "200",
        "bytes": size,
        "namelookup_s": 0.02,
        "connect_s": 0.1,
        "first_byte_s": 0.2,
        "total_s": 1.02,
        "local_port": "40000",
        "url": url,
    }
    return "mplab-curl " + json.dumps(fields | changes) + "\n"


def digest(size: int) -> str:
    return f"{hashlib.sha256(stream_bytes(size)).hexdigest()}  -\n"


def good_reply(argv: Sequence[str]) -> CommandResult:
    if "--output" in argv:
        flows = int(re.findall(r"\[1-(\d+)\]", argv[-1])[0])
        lines = [report(1000, f"http://dl.lab/1000?flow={flow}") for flow in range(flows, 0, -1)]
        return CommandResult(0, "1795252697.900000000\n1795252699.150000000\n", "".join(lines))
    return CommandResult(0, digest(1000), report(1000))


def test_observations(download: SimpleNamespace, make_cell: Callable[..., Any]) -> None:
    scenario = download.scenario.SCENARIO
    parameters = scenario.parameters.model_validate(
        {
            "sizes": ["1 kB"],
            "bundles": [{"flows": 3, "concurrent": 2, "size": "1 kB"}],
            "pause": "0 s",
        }
    )
    cell = make_cell(reply=good_reply)
    cell.run(scenario, parameters)
    single, bundle = cell.observations
    assert (single["event"], single["size"], single["bytes"], single["verified"]) == ("download", "1 kB", 1000, True)
    assert bundle["bundle"] == "3 × 1 kB, 2 at a time"
    assert bundle["total_s"] == pytest.approx(1.25)
    assert [result["flow"] for result in bundle["results"]] == [1, 2, 3]


@pytest.mark.parametrize(
    ("stdout", "stderr", "message"),
    [
        (digest(1000), report(999), "download of 1 kB: 999 bytes came, 1000 were requested"),
        (digest(1000), report(1000, status="404"), "download of 1 kB: HTTP status 404, 200 or 206 is needed"),
        (
            "0" * 64 + "  -\n",
            report(1000),
            "download of 1 kB: 1000 bytes came, with another SHA-256 than those of dl.lab",
        ),
        (
            digest(0),
            "curl: (28) Operation timed out after 5000 milliseconds\n" + report(400, exit=28),
            "download of 1 kB: curl failed (28) after 400 bytes: (28) Operation timed out after 5000 milliseconds",
        ),
        ("", "sh: curl: not found\n", "download of 1 kB: curl gave no result: sh: curl: not found"),
    ],
)
def test_a_download_that_went_wrong(
    download: SimpleNamespace, make_cell: Callable[..., Any], stdout: str, stderr: str, message: str
) -> None:
    scenario = download.scenario.SCENARIO
    cell = make_cell(reply=lambda _argv: CommandResult(0, stdout, stderr))
    with pytest.raises(StepError, match=f"^{re.escape(message)}$"):
        cell.run(scenario, scenario.parameters.model_validate({"sizes": ["1 kB"]}))
    assert cell.observations == []


def test_a_bundle_with_a_lost_flow(download: SimpleNamespace, make_cell: Callable[..., Any]) -> None:
    scenario = download.scenario.SCENARIO
    parameters = scenario.parameters.model_validate({"sizes": [], "bundles": [{"flows": 2, "size": "1 kB"}]})
    answer = CommandResult(0, "1.0\n2.0\n", report(1000, "http://dl.lab/1000?flow=2"))
    cell = make_cell(reply=lambda _argv: answer)
    with pytest.raises(StepError, match="bundle of 2 × 1 kB, 1 at a time: 1 flows have a result"):
        cell.run(scenario, parameters)


def repeated(download: SimpleNamespace, make_cell: Callable[..., Any], reply: Any = None, **changes: Any) -> Any:
    scenario = download.scenario.SCENARIO
    sizes = ["1 kB", "10 kB", "50 kB", "100 kB"]
    parameters = scenario.parameters.model_validate({"sizes": sizes, "repeat": 5, "pause": "0 s"} | changes)
    cell = make_cell(reply=reply or reply_of_size, time_limit_s=scenario.time_limit_s(parameters))
    cell.run(scenario, parameters)
    return cell


def reply_of_size(argv: Sequence[str]) -> CommandResult:
    size = int(argv[-1].rsplit("/", 1)[1])
    return CommandResult(0, digest(size), report(size))


class Failing:
    """Replies as `reply_of_size`, but the downloads with these numbers, from 0, are cut off."""

    def __init__(self, *numbers: int) -> None:
        self.numbers, self.count = numbers, -1

    def __call__(self, argv: Sequence[str]) -> CommandResult:
        self.count += 1
        if self.count in self.numbers:
            return CommandResult(0, digest(0), "curl: (28) Operation timed out\n" + report(400, exit=28))
        return reply_of_size(argv)


def test_each_repetition_has_all_sizes_in_an_order_of_its_own(
    download: SimpleNamespace, make_cell: Callable[..., Any]
) -> None:
    first, again = (repeated(download, make_cell).observations for _ in range(2))
    orders = [[item["size"] for item in first if item["repeat"] == number] for number in range(1, 6)]
    assert all(sorted(order) == ["1 kB", "10 kB", "100 kB", "50 kB"] for order in orders)
    assert len(set(map(tuple, orders))) > 1
    assert [item["size"] for item in first] == [item["size"] for item in again], "the cell's seed gives the order"
    values = download.scores.score(first, {}, None)
    numbers = [value.repeat for value in values if value.metric == "download_time" and value.labels["size"] == "50 kB"]
    assert numbers == [1, 2, 3, 4, 5]


def test_a_failed_repetition_is_recorded_and_the_others_count(
    download: SimpleNamespace, make_cell: Callable[..., Any]
) -> None:
    cell = repeated(download, make_cell, Failing(2, 7), sizes=["1 kB"], repeat=40)
    events = [(item["event"], item.get("repeat")) for item in cell.observations]
    assert [number for event, number in events if event == "download"] == [1, 2, *range(4, 8), *range(9, 41)]
    assert [number for event, number in events if event == "failed"] == [3, 8]
    (warning,) = (item for item in cell.observations if item["event"] == "warning")
    assert warning["text"] == "2 of 40 downloads failed; see the observations"
    values = download.scores.score(cell.observations, {}, None)
    assert [(value.value, value.repeat) for value in values if value.metric == "failed_share"] == [(5.0, 0)]
    assert len([value for value in values if value.metric == "download_time"]) == 38, "a failure is no value"


@pytest.mark.parametrize(("repeat", "failing"), [(8, (3,)), (40, (2, 7, 30)), (5, (0,))])
def test_more_failures_than_one_in_twenty_fail_the_cell(
    download: SimpleNamespace, make_cell: Callable[..., Any], repeat: int, failing: tuple[int, ...]
) -> None:
    message = (
        rf"^download of 1 kB: curl failed \(28\) .*\. {len(failing)} of {repeat} repetitions of this download failed: "
        "at most 5 % may fail$"
    )
    with pytest.raises(StepError, match=message):
        repeated(download, make_cell, Failing(*failing), sizes=["1 kB"], repeat=repeat)


def test_failures_are_counted_for_each_file(download: SimpleNamespace, make_cell: Callable[..., Any]) -> None:
    class FailingSize(Failing):
        def __call__(self, argv: Sequence[str]) -> CommandResult:
            return super().__call__(argv) if argv[-1].endswith("/50000") else reply_of_size(argv)

    with pytest.raises(StepError, match=r"download of 50 kB: .* 2 of 20 repetitions"):
        repeated(download, make_cell, FailingSize(3, 9), repeat=20)


def test_a_stalled_file_takes_no_time_from_the_others(
    download: SimpleNamespace, make_cell: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    now, limits = 0.0, {1000: set[float](), 2_000_000: set[float]()}

    def reply(argv: Sequence[str]) -> CommandResult:
        nonlocal now
        size, limit_s = int(argv[-1].rsplit("/", 1)[1]), float(argv[argv.index("--max-time") + 1])
        limits[size].add(limit_s)
        stalled = size == 2_000_000 and len(order) % 2 == 0 and not failed
        failed.extend([size] * stalled)
        order.append(size)
        now += limit_s if stalled else 1.5
        if stalled:
            return CommandResult(0, digest(0), "curl: (28) Operation timed out\n" + report(400, exit=28))
        return CommandResult(0, digest(size), report(size))

    order: list[int] = []
    failed: list[int] = []
    clock = SimpleNamespace(monotonic=lambda: now, sleep=lambda _s: None)
    monkeypatch.setattr(download.scenario, "time", clock)
    cell = repeated(download, make_cell, reply, sizes=["1 kB", "2 MB"], repeat=20)
    assert len(order) == 40
    assert limits == {1000: {11.0}, 2_000_000: {90.0}}
    assert [item["name"] for item in cell.observations if item["event"] == "failed"] == ["2 MB"]


def test_wrong_bytes_fail_the_cell_in_any_repetition(download: SimpleNamespace, make_cell: Callable[..., Any]) -> None:
    with pytest.raises(StepError, match="another SHA-256"):
        repeated(download, make_cell, lambda _argv: CommandResult(0, "0" * 64, report(1000)), sizes=["1 kB"])


def test_time_limit_and_estimate_grow_with_the_repetitions(download: SimpleNamespace) -> None:
    scenario = download.scenario.SCENARIO
    once, often = (scenario.parameters.model_validate({"sizes": ["128 KiB"], "repeat": n}) for n in (1, 10))
    assert scenario.time_limit_s(often) >= 10 * scenario.time_limit_s(once)
    assert scenario.estimate_s(often) == pytest.approx(10 * scenario.estimate_s(once) + 9 * often.pause)


def test_curl_reports_are_found_behind_other_text(download: SimpleNamespace) -> None:
    transfers, problem = download.curl.parse("--:--:--  0  " + report(5, "http://dl.lab/stream?flow=7"))
    assert (transfers[0].flow, transfers[0].bytes, problem) == (7, 5, "")


def test_sizes_without_a_file_are_byte_ranges(download: SimpleNamespace) -> None:
    assert download.curl.file_argv(1_000_000, 5.0)[-1] == "http://dl.lab/1000000"
    assert download.curl.file_argv(12_345, 5.0)[-3:] == ["--range", "0-12344", "http://dl.lab/stream"]


def test_flows_may_come_one_after_the_other_at_a_pace(download: SimpleNamespace, make_cell: Callable[..., Any]) -> None:
    scenario = download.scenario.SCENARIO
    parameters = scenario.parameters.model_validate(
        {"sizes": [], "bundles": [{"flows": 6, "size": "1 kB", "every": "5 s"}], "server": "messages"}
    )
    cell = make_cell(reply=good_reply)
    cell.run(scenario, parameters)
    (command,) = cell.context.phone.commands
    assert command[command.index("--rate") + 1] == "720/h"
    assert "--parallel" not in command
    assert command[-1] == "http://messages.lab/1000?flow=[1-6]"
    assert cell.observations[0]["bundle"] == "6 × 1 kB, one every 5 s"
    assert 30 < scenario.estimate_s(parameters) < 35
    assert scenario.time_limit_s(parameters) > 40


def test_scenario_and_origin_agree(download: SimpleNamespace) -> None:
    assert {f"{name}.lab" for name in get_args(download.curl.Server)} == {FILE_HOST, *APP_HOSTS}
    assert download.curl.stream_sha256(12_345) == hashlib.sha256(stream_bytes(12_345)).hexdigest()


def test_default_parameters_fit_into_the_default_cell_timeout(download: SimpleNamespace) -> None:
    scenario = download.scenario.SCENARIO
    parameters = scenario.parameters()
    assert parameters.sizes == (10_000, 100_000, 1_000_000, 10_000_000)
    assert scenario.estimate_s(parameters) < scenario.time_limit_s(parameters) <= 120


def test_parameters_survive_being_written(download: SimpleNamespace) -> None:
    model = download.scenario.SCENARIO.parameters
    parameters = model.model_validate({"bundles": [{"flows": 50, "concurrent": 6, "size": "30 kB"}]})
    assert model.model_validate_json(parameters.model_dump_json()) == parameters


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sizes: [1000]", "a number needs a unit: B, kB, MB"),
        ("sizes: [1 MiB, 1 mb]", "unknown unit 'mb'. Did you mean 'MB'?"),
        ("sizes: [200 MB]", "size 200 MB: more than 0 and at most 100 MB is needed"),
        ("sizes: [0 B]", "size 0 B: more than 0 and at most 100 MB is needed"),
        ("sizes: []", "nothing to download: give 'sizes' or 'bundles'"),
        ("sizes: [1 MB, 1000 kB]", "'sizes' has the same entry twice"),
        ("bundles: [{flows: 0, size: 1 kB}]", "found 0, allowed: 1…1000"),
        ("bundles: [{flows: 5}]", "key 'size' is missing"),
        ("bundles: [{flows: 5, size: 1 kB, concurrent: 2, every: 1 s}]", "a file every 1 s, and 2 at a time"),
        ("bundles: [{flows: 5, size: 1 kB, every: 1 h}]", "must be at most 600"),
        ("server: mesages", "Did you mean 'messages'? Allowed: dl, video, store, messages"),
        ("size: [1 MB]", "unknown key 'size'"),
        ("pause: 2", "a number needs a unit: ms, s"),
    ],
)
def test_wrong_parameters(
    download: SimpleNamespace, problems: Callable[[Any, str], list[str]], text: str, message: str
) -> None:
    assert message in "\n".join(problems(download.scenario.SCENARIO, text))


def test_scores(download: SimpleNamespace) -> None:
    flow = {"bytes": 1000, "namelookup_s": 0.02, "first_byte_s": 0.2}
    observations = [
        {"t": 0, "event": "download", "size": "1 MB", **flow, "bytes": 1_000_000, "total_s": 2.02},
        {
            "t": 1,
            "event": "bundle",
            "bundle": "2 × 1 kB, 1 at a time",
            "total_s": 2.5,
            "results": [{**flow, "total_s": 1.02}, {**flow, "total_s": 2.02}],
        },
        {
            "t": 2,
            "event": "traffic",
            "interfaces": {
                "wlan0": {"bytes_up": 1000, "bytes_down": 4000, "packets_up": 10, "packets_down": 40},
                "rmnet0": {"bytes_up": 200, "bytes_down": 300, "packets_up": 2, "packets_down": 3},
            },
        },
        {"t": 2, "event": "something else"},
    ]
    values = {
        (value.metric, *value.labels.values()): value.value for value in download.scores.score(observations, {}, Path())
    }
    assert values == pytest.approx(
        {
            ("download_time", "1 MB"): 2.0,
            ("goodput", "1 MB"): 4.0,
            ("time_to_first_byte", "1 MB"): 0.18,
            ("dns_time", "1 MB"): 0.02,
            ("bundle_time", "2 × 1 kB, 1 at a time"): 2.5,
            ("flow_time", "2 × 1 kB, 1 at a time"): 1.5,
            ("wifi_bytes",): 5.0,
            ("cellular_bytes",): 0.5,
        }
    )


def test_values_carry_the_labels_of_their_metric(download: SimpleNamespace) -> None:
    metrics = {metric.name: metric for metric in download.scores.METRICS}
    observation = {"event": "download", "size": "1 kB", **json.loads(report(1000).split(" ", 1)[1])}
    for value in download.scores.score([observation], {}, Path()):
        assert tuple(value.labels) == metrics[value.metric].labels


def test_without_a_redirection_curl_is_told_the_proxy(download: SimpleNamespace, make_cell: Callable[..., Any]) -> None:
    scenario = download.scenario.SCENARIO
    settings = {"sizes": ["1 kB"], "bundles": [{"flows": 3, "size": "1 kB"}], "pause": "0 s"}
    parameters = scenario.parameters.model_validate(settings)
    for proxy, options in (("127.0.0.1:1080", ["", "--socks5-hostname", "127.0.0.1:1080"]), ("", ["*"])):
        cell = make_cell(reply=good_reply, app_proxy=proxy)
        cell.run(scenario, parameters)
        assert len(cell.context.phone.commands) == 2
        for argv in cell.context.phone.commands:
            after = argv.index("--noproxy") + 1
            assert argv[after : after + len(options)] == options
            assert ("--socks5-hostname" in argv) == bool(proxy)
        scored = {value.metric for value in download.scores.score(cell.observations, {}, Path())}
        assert ("dns_time" in scored) is not bool(proxy), "a proxy looks names up itself"
        assert {"download_time", "time_to_first_byte", "flow_time"} <= scored

"""The call scenario: steps in browsers that answer from a table, scores of deliberately degraded speech."""

import importlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mplab.base.errors import CheckError, StepError
from mplab.base.programs import SERVICES_DIR
from mplab.drivers.services import load_service
from mplab.format.selector import Selector

RATE = 16_000
BEGAN = 1_800_000_000.0
DELAY_S = 0.18
PACKET = RATE // 50

load_service("turn")
speech_module = importlib.import_module("mplab.services.turn.speech")
needs_espeak = pytest.mark.skipif(speech_module.ESPEAK.find() is None, reason="not installed: espeak-ng")


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return speech_module.make_recording(tmp_path_factory.mktemp("speech"))


def clock(samples: int, began: float) -> list[list[float]]:
    """Return a (sample, time) pair every 0.1 s; times are up to a few milliseconds late."""
    rng = np.random.default_rng(3)
    return [[at, began + at / RATE + abs(rng.normal(0, 0.002))] for at in range(0, samples, RATE // 10)]


def spoilt(samples: NDArray[np.float64], *, lost: float) -> NDArray[np.float64]:
    """Return the samples without the share `lost` of their 20 ms packets."""
    rng = np.random.default_rng(7)
    mask = np.repeat(rng.random(len(samples) // PACKET + 1) >= lost, PACKET)[: len(samples)]
    return samples * mask


def cell(
    folder: Path,
    call: SimpleNamespace,
    recording: Any,
    *,
    lost: float = 0.0,
    delay_s: float = DELAY_S,
    utterances: int = 2,
) -> list[dict[str, Any]]:
    """Write the files of a call whose recording is late and has gaps; return its observations."""
    entries = json.loads(recording.utterances.read_text())[:utterances]
    samples = call.quality.read_wav(recording.reference)[: round((entries[-1]["end_s"] + 1) * RATE)]
    heard = np.concatenate((np.zeros(round(delay_s * RATE)), spoilt(samples, lost=lost)))
    (folder / "recordings").mkdir(parents=True)
    speech_module.write_wav(folder / "recordings" / "reference.wav", samples, RATE)
    speech_module.write_wav(folder / "recordings" / "call-1.wav", heard, RATE)
    track = {
        "call": "1",
        "file": "recordings/call-1.wav",
        "rate_hz": RATE,
        "gaps": 0,
        "clock": clock(len(heard), BEGAN),
    }
    return [
        {"event": "heard", **track},
        *(
            {
                "event": "utterance",
                "call": "1",
                "number": number,
                "start_s": entry["start_s"],
                "end_s": entry["end_s"],
                "said_at": BEGAN + entry["start_s"],
                "reference": "recordings/reference.wav",
            }
            for number, entry in enumerate(entries, 1)
        ),
    ]


def stalled(observations: list[dict[str, Any]], **stalls_ms: dict[str, float]) -> list[dict[str, Any]]:
    """Return observations in which utterances, named by number (``u1=…``), have stalls."""
    return [
        {**item, "stalls_ms": stalls_ms.get(f"u{item['number']}", {"phone": 0.0, "desktop": 0.0})}
        if item["event"] == "utterance"
        else item
        for item in observations
    ]


def scored(call: SimpleNamespace, observations: list[dict[str, Any]], folder: Path) -> dict[tuple[str, ...], float]:
    values = call.scores.score(observations, {}, folder)
    declared = {metric.name: set(metric.labels) for metric in call.scores.METRICS}
    assert all(set(value.labels) == declared[value.metric] for value in values)
    return {(value.metric, *value.labels.values()): value.value for value in values}


@needs_espeak
def test_delay_is_found_whatever_was_lost(call: SimpleNamespace, recording: Any, tmp_path: Path) -> None:
    for number, (lost, delay_s) in enumerate([(0.0, 0.05), (0.0, 1.7), (0.2, 0.4)]):
        folder = tmp_path / str(number)
        metrics = scored(call, cell(folder, call, recording, lost=lost, delay_s=delay_s, utterances=1), folder)
        assert metrics["mouth_to_ear",] == pytest.approx(1000 * delay_s, abs=2)
        assert metrics["mouth_to_ear_spread",] < 5
        assert metrics["utterance_delay", "1", "1"] == pytest.approx(1000 * delay_s, abs=2)
        assert metrics["not_found",] == 0


@needs_espeak
def test_mos_falls_with_loss(call: SimpleNamespace, recording: Any, tmp_path: Path) -> None:
    if not call.quality.has_pesq():
        pytest.skip("the extra PESQ is not installed: make pesq")
    shares = (0.0, 0.05, 0.4)
    results = [
        scored(call, cell(tmp_path / str(lost), call, recording, lost=lost, utterances=1), tmp_path / str(lost))
        for lost in shares
    ]
    for band in ("narrow", "wide"):
        mos = [values[f"mos_{band}",] for values in results]
        assert mos == sorted(mos, reverse=True)
        assert mos[0] > 4.4
        assert mos[-1] < 2


@needs_espeak
def test_silence_is_the_worst_and_has_no_delay(call: SimpleNamespace, recording: Any, tmp_path: Path) -> None:
    metrics = scored(call, cell(tmp_path, call, recording, lost=1.1, utterances=1), tmp_path)
    assert metrics["not_found",] == 100
    assert not [key for key in metrics if key[0].startswith(("mouth_to_ear", "utterance_delay"))]
    if call.quality.has_pesq():
        assert metrics["mos_narrow",] == metrics["mos_wide",] == call.quality.WORST_MOS


@needs_espeak
def test_without_pesq_there_is_no_mos_but_all_else(
    call: SimpleNamespace, recording: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call.quality, "_MODULE", "no_such_module_as_pesq")
    metrics = scored(call, cell(tmp_path, call, recording, utterances=1), tmp_path)
    assert metrics["mouth_to_ear",] == pytest.approx(1000 * DELAY_S, abs=2)
    assert not [key for key in metrics if "mos" in key[0]]


@needs_espeak
def test_an_utterance_in_which_the_host_stalled_is_left_out(
    call: SimpleNamespace, recording: Any, tmp_path: Path
) -> None:
    observations = cell(tmp_path, call, recording)
    both = scored(call, stalled(observations, u2={"phone": 30.0, "desktop": 45.0}), tmp_path)
    assert (both["utterances_disturbed",], both["host_stall_worst",]) == (0, 45)
    assert ("utterance_delay", "1", "2") in both
    for who in ("phone", "desktop", "host"):
        metrics = scored(call, stalled(observations, u2={who: 130.0}), tmp_path)
        assert (metrics["utterances_disturbed",], metrics["host_stall_worst",]) == (50, 130)
        assert ("utterance_delay", "1", "2") not in metrics
        assert metrics["mouth_to_ear",] == metrics["utterance_delay", "1", "1"]


def statistics(*, call: str = "1", late: float = 1.0, lost: int = 0, made_up: float = 0.01) -> list[dict[str, Any]]:
    """Return getStats records of five seconds; `late` multiplies jitter, delay and round trips."""
    return [
        {
            "event": "statistics",
            "call": call,
            "side": "phone",
            "at": BEGAN + second,
            "inbound": {
                "packetsReceived": 50 * second,
                "packetsLost": lost * second,
                "packetsDiscarded": lost * second,
                "bytesReceived": 4000 * second,
                "jitter": 0.004 * late,
                "totalSamplesReceived": 48_000 * second,
                "concealedSamples": 48_000 * second * made_up,
                "jitterBufferDelay": 48_000 * second * 0.05 * late,
                "jitterBufferEmittedCount": 48_000 * second,
            },
            "pair": {"totalRoundTripTime": 0.02 * late * second, "responsesReceived": second},
        }
        for second in range(1, 6)
    ]


def test_what_get_stats_says(call: SimpleNamespace, tmp_path: Path) -> None:
    good = scored(call, statistics(), tmp_path)
    assert good["voice_jitter",] == good["voice_jitter_worst",] == pytest.approx(4)
    assert good["concealment",] == pytest.approx(1)
    assert good["jitter_buffer_delay",] == pytest.approx(50)
    assert good["call_round_trip",] == pytest.approx(20)
    assert good["voice_rate",] == pytest.approx(32)
    bad = scored(call, statistics(late=3, lost=5, made_up=0.3), tmp_path)
    names = (
        "voice_jitter",
        "voice_jitter_worst",
        "concealment",
        "jitter_buffer_delay",
        "call_round_trip",
        "packets_lost",
    )
    assert all(bad[name,] > good[name,] for name in (*names, "packets_discarded"))


def test_what_get_stats_says_while_the_host_stalled_does_not_count(call: SimpleNamespace) -> None:
    samples = statistics()
    spoilt = {**samples[2]["inbound"], "concealedSamples": 60_000, "jitter": 0.5}
    samples = [*samples[:2], *({**item, "inbound": {**item["inbound"], **spoilt}} for item in samples[2:3])]
    samples += [
        {**item, "inbound": {**item["inbound"], "concealedSamples": 60_000 + 480 * n}}
        for n, item in enumerate(statistics()[3:], 1)
    ]
    all_of_it = call.scores.statistics_values(samples, {})
    assert all_of_it["concealment"] > 25
    assert all_of_it["voice_jitter_worst"] == 500
    undisturbed = call.scores.statistics_values(samples, {"1": [(BEGAN + 2.5, BEGAN + 2.6)]})
    assert undisturbed["concealment"] == pytest.approx(1)
    assert undisturbed["voice_jitter_worst"] == pytest.approx(4)
    assert call.scores.statistics_values(samples, {"1": [(BEGAN, BEGAN + 9)]}) == {}


def test_the_control_call_is_scored_apart(call: SimpleNamespace, tmp_path: Path) -> None:
    both = scored(call, [*statistics(call="control", made_up=0.2), *statistics(made_up=0.01)], tmp_path)
    assert both["control_concealment",] == pytest.approx(20)
    assert both["concealment",] == pytest.approx(1)
    assert scored(call, [], tmp_path) == {}


def test_a_clock_is_not_fooled_by_late_pairs_and_tells_pauses(call: SimpleNamespace) -> None:
    pairs = clock(20 * RATE, BEGAN)
    steady = call.quality.Clock(pairs, RATE)
    assert steady.time_at(7.3) == pytest.approx(BEGAN + 7.3, abs=0.002)
    assert steady.position_at(BEGAN + 12) == pytest.approx(12, abs=0.01)
    assert steady.pause_s < 0.01
    late = call.quality.Clock([[at, time + (0.8 if at == 10 * RATE else 0)] for at, time in pairs], RATE)
    assert late.time_at(10.0) == pytest.approx(BEGAN + 10, abs=0.002)
    paused = call.quality.Clock([[at, time + (0.5 if at > 10 * RATE else 0)] for at, time in pairs], RATE)
    assert paused.pause_s == pytest.approx(0.5, abs=0.01)
    assert paused.time_at(15.0) == pytest.approx(BEGAN + 15.5, abs=0.002)


def test_a_stall_is_heard_for_a_while(call: SimpleNamespace) -> None:
    after = call.stalls.AFTERMATH_S
    span = (BEGAN + 15, BEGAN + 25)
    assert call.stalls.worst_ms([], span) == 0
    stalls = [[BEGAN + 14 - after, 0.9], [BEGAN + 16 - after, 0.07], [BEGAN + 20, 0.03], [BEGAN + 25.1, 0.4]]
    assert call.stalls.worst_ms(stalls, span) == 70
    assert call.stalls.worst_ms(stalls, (BEGAN + 80, BEGAN + 90)) == 0


def test_pauses_of_a_clock_are_stalls(call: SimpleNamespace) -> None:
    pairs = clock(40 * RATE, BEGAN)
    assert call.quality.Clock(pairs, RATE).pauses() == []
    paused = call.quality.Clock([[at, time + (0.2 if at > 20 * RATE else 0)] for at, time in pairs], RATE)
    ((began, length),) = paused.pauses()
    assert began == pytest.approx(BEGAN + 20, abs=0.3)
    assert length == pytest.approx(0.2, abs=0.005)


def test_time_that_other_machines_took_is_a_stall(call: SimpleNamespace) -> None:
    taken_s = iter([7.0, 7.01, 7.13, 7.13])
    times = iter([BEGAN, BEGAN + 0.5, BEGAN + 1.0, BEGAN + 1.5])
    stolen = call.stalls.Stolen(lambda: next(taken_s), lambda: next(times))
    for _ in range(3):
        stolen.look()
    assert stolen.stalls == [[BEGAN + 0.5, pytest.approx(0.12)]]


def test_an_utterance_lasts_until_it_is_heard(call: SimpleNamespace) -> None:
    begin, end = call.stalls.span_of({"said_at": BEGAN, "start_s": 1.0, "end_s": 9.0})
    assert begin == BEGAN
    assert end > BEGAN + 8


def test_too_many_stalls_make_the_cell_invalid(call: SimpleNamespace) -> None:
    call.scenario.judge_stalls([True, False])
    call.scenario.judge_stalls([])
    with pytest.raises(
        CheckError, match=r"^in 2 of 3 utterances a browser or the host was blocked for more than 50 ms \(allowed: 50%"
    ):
        call.scenario.judge_stalls([True, False, True])


def test_the_control_call_judges_the_host(call: SimpleNamespace) -> None:
    mos = call.quality.Mos
    call.scenario.judge_control(0.0, mos(4.2, 4.3))
    call.scenario.judge_control(0.0, None)
    with pytest.raises(CheckError, match=r"^the control call over open links: 30\.0% of its sound was concealed"):
        call.scenario.judge_control(0.3, None)
    with pytest.raises(CheckError, match=r"its wide-band MOS is 2\.10 .* the host is too busy for calls$"):
        call.scenario.judge_control(0.0, mos(2.4, 2.1))


RELAY = {"candidateType": "relay", "relayProtocol": "tcp"}


def test_only_relays_by_tcp_will_do(call: SimpleNamespace) -> None:
    pair = {"local": RELAY, "remote": {"candidateType": "relay"}}
    used = call.scenario.used_candidates([{"at": 1}, {"at": 2, **pair}, {"at": 3, **pair}])
    assert used == [pair]
    call.scenario.check_candidates("1", {"phone": used, "desktop": used})
    direct = [{"local": {"candidateType": "host", "protocol": "udp"}, "remote": {"candidateType": "host"}}]
    with pytest.raises(StepError, match=r"call 1: the phone used \('host', None, 'host'\); relays over TCP"):
        call.scenario.check_candidates("1", {"desktop": used, "phone": [*used, *direct]})
    with pytest.raises(StepError, match="the desktop reports no candidate pair"):
        call.scenario.check_candidates("1", {"desktop": [], "phone": used})


class TableUi:
    """A page whose scripts answer from a table."""

    def __init__(self, answers: Mapping[str, Any], *, problem: str = "", never: str = "") -> None:
        self._answers, self._problem, self._never = answers, problem, never
        self.done: list[str] = []

    def open(self, target: str, *, timeout_s: float = 60.0) -> None:
        self.done.append(target)

    def tap(self, selector: Selector, *, timeout_s: float = 10.0) -> None:
        self.done.append(f"tap {selector.value}")

    def wait(self, selector: Selector, *, timeout_s: float = 10.0) -> None:
        if self._never and self._never in selector.value:
            raise StepError(f"browser: waiting for {selector.value}")

    def read(self, selector: Selector, *, timeout_s: float = 10.0) -> str:
        return self._problem if selector.value == "#problem" else "ringing"

    def evaluate(self, script: str) -> Any:
        return next(answer for part, answer in self._answers.items() if part in script)


def made(call: SimpleNamespace, make_cell: Callable[..., Any], phone: TableUi, desktop: TableUi, facts: Any) -> None:
    cell = make_cell()
    context = SimpleNamespace(
        service=lambda name: facts, observe=cell.context.observe, cell_dir=cell.context.cell_dir, open_ui=None
    )
    speech = SimpleNamespace(reference=None)
    utterances = [call.speech.Utterance(1, "x", 1.0, 9.0)]
    sides = call.scenario._Sides(phone, desktop)
    call.scenario._Call(context, sides, speech, utterances, "1").make()


FACTS = {"url": "https://call.lab/"}


def test_a_call_that_never_connects_says_where_it_stands(call: SimpleNamespace, make_cell: Callable[..., Any]) -> None:
    phone, desktop = TableUi({"state": "answering"}, never="talking"), TableUi({"state": "ringing"})
    with pytest.raises(StepError, match=r"^call 1: not connected within 20 s: the phone is ringing$"):
        made(call, make_cell, phone, desktop, FACTS)
    (page,) = {action for ui in (phone, desktop) for action in ui.done if action.startswith("https")}
    assert page.startswith("https://call.lab/?room=")
    assert desktop.done[1:] == ["tap #call"]


def test_a_call_that_fails_says_why(call: SimpleNamespace, make_cell: Callable[..., Any]) -> None:
    phone = TableUi({"state": "answering"})
    desktop = TableUi({"state": "failed"}, problem="Error: the TURN server gave no relay")
    with pytest.raises(StepError, match=r"^call 1: failed at the desktop: Error: the TURN server gave no relay$"):
        made(call, make_cell, phone, desktop, FACTS)


def test_a_call_without_sound_is_given_up(
    call: SimpleNamespace, make_cell: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [BEGAN]
    monkeypatch.setattr(
        call.scenario,
        "time",
        SimpleNamespace(time=lambda: now[0], sleep=lambda seconds: now.__setitem__(0, now[0] + seconds)),
    )
    phone = TableUi({"dataset.state": "talking", "stats": [{"at": BEGAN}, {"at": BEGAN, "inbound": None}]})
    for sample in phone.evaluate("stats"):
        sample.update(
            {name: sample.get(name) for name in ("inbound", "outbound", "pair", "local", "remote", "remoteInbound")}
        )
    desktop = TableUi({"dataset.state": "talking", "events": {"talking": BEGAN}})
    with pytest.raises(StepError, match=r"^call 1: no sound: connected, and no packet of it within 8 s$"):
        made(call, make_cell, phone, desktop, FACTS)
    assert now[0] < BEGAN + 12


def test_parameters(call: SimpleNamespace, problems: Callable[[Any, str], list[str]]) -> None:
    scenario = call.scenario.SCENARIO
    default = scenario.parameters()
    assert (default.duration, default.calls) == (120, 1)
    assert scenario.time_limit_s(scenario.parameters(calls=10)) > 10 * 120
    assert problems(scenario, "duration: 30 s\ncalls: 3\n") == []
    for text, word in (("duration: 5 s", "duration"), ("duration: 3 min", "duration"), ("calls: 0", "calls")):
        (problem,) = problems(scenario, text)
        assert word in problem


def test_only_whole_utterances_are_said(call: SimpleNamespace) -> None:
    utterances = tuple(call.speech.Utterance(n, "x", 10 * n - 9, 10 * n) for n in range(1, 5))
    speech = call.speech.Speech(Path(), Path(), Path(), utterances)
    assert [item.number for item in speech.within(31)] == [1, 2, 3]
    assert [item.number for item in speech.within(1)] == [1]


def test_the_screen_of_the_virtual_phone_is_complete(call: SimpleNamespace) -> None:
    page = (SERVICES_DIR / "turn" / "www" / "index.html").read_text()
    for element in ("dial", "answer", "hang up", "state", "problem"):
        name = call.scenario.APP.elements[element].value.partition(":")[0].removeprefix("#")
        assert f'id="{name}"' in page

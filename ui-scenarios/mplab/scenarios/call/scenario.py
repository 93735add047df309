"""Call the phone from a desktop by WebRTC over TURN and TCP, play recorded speech, and record the phone's sound."""

import secrets
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import Field

from mplab.base import load
from mplab.base.errors import CheckError, StepError
from mplab.drivers.ui import BrowserUi
from mplab.format.units import DurationS
from mplab.scenarios.base import Context, Parameters, Scenario, Session
from mplab.userfiles.experiments.app import load_app

from . import page, quality, stalls
from .quality import Clock
from .speech import Speech, Utterance

APP = load_app(Path(__file__).parent)
SERVICE = "turn"
SHORTEST_S, LONGEST_S = 10.0, 120.0
CONTROL, CONTROL_S = "control", SHORTEST_S
"""Name of the control call (a test of the host before a cell), and the duration of its speech, s: one utterance."""
CONTROL_CONCEALED, CONTROL_MOS = 0.03, 3.5
"""Largest share of concealed sound and lowest wide-band MOS of a valid control call."""
REFERENCE = "recordings/reference.wav"

_SAID_STRENGTH = 0.9
_ANSWER_S, _CONNECT_S, _STEP_S = 15.0, 20.0, 10.0
_FIRST_SOUND_S = 8.0
"""Time from the start of the caller's speech file until a packet must have reached the phone, s. It covers 1 s of
silence in the file, and the delay of the path."""
_TAIL_S = 1.5
"""Time for which the call continues after the caller's last word, s: path and jitter buffer delay the sound."""
_WATCH_S, _LOOK_S = 2.0, 0.5
_OVERHEAD_S, _SETUP_S = 20.0, 8.0
_DEVICES = ("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream")


class CallParameters(Parameters):
    """Parameters of the scenario `call`."""

    duration: DurationS = Field(
        LONGEST_S,
        ge=SHORTEST_S,
        le=LONGEST_S,
        description="Speech of one call (nikravesh2016 §3.3), 10 s to 2 min: the whole utterances that fit into it.",
    )
    calls: int = Field(
        1,
        ge=1,
        le=20,
        description="Number of calls, one after the other; the paper made ten. To mix ten calls with other cells, use "
        "repetitions: 10 of the experiment.",
    )
    pause: DurationS = Field(3.0, description="Rest between two calls.")


@dataclass(frozen=True)
class _Sides:
    """The browsers at the two ends of a call."""

    phone: BrowserUi
    desktop: BrowserUi

    def items(self) -> tuple[tuple[str, BrowserUi], ...]:
        """Return name and browser of each end, the phone first."""
        return ("phone", self.phone), ("desktop", self.desktop)


class CallScenario(Scenario[CallParameters]):
    """Call the phone from the desktop peer, both with a browser."""

    name = "call"
    title = "Calls"
    parameters = CallParameters
    needs_ui = True
    services = (SERVICE,)
    cpus = 0.8

    def time_limit_s(self, parameters: CallParameters) -> float:
        """Return the time limit, s: speech plus pauses, plus 20 s per call for setup, end and results, plus 20 s."""
        return parameters.calls * (parameters.duration + parameters.pause + _OVERHEAD_S) + _CONNECT_S

    def estimate_s(self, parameters: CallParameters) -> float:
        """Return the estimated duration, s: speech plus pauses, plus call setup, plus the control call."""
        calls = parameters.calls * (parameters.duration + parameters.pause + _SETUP_S)
        return calls + CONTROL_S + _SETUP_S

    def check(self, context: Context, parameters: CallParameters) -> None:
        """Check the host with the control call: a short call over links that are not shaped.

        Raises:
            CheckError: the sound of the control call is bad, so the host is too busy for calls.
            StepError: the control call failed.
        """
        speech = Speech.of_service(context.service(SERVICE))
        with _open(context, speech) as sides:
            call = _Call(context, sides, speech, speech.within(CONTROL_S), CONTROL)
            call.make()
        judge_control(*call.judged())

    @contextmanager
    def open(self, context: Context, parameters: CallParameters) -> Iterator["_Session"]:
        """Copy the reference speech to the cell's folder, and start both browsers. Yield the session."""
        speech = Speech.of_service(context.service(SERVICE))
        target = context.cell_dir / REFERENCE
        target.parent.mkdir(exist_ok=True)
        shutil.copyfile(speech.reference, target)
        with _open(context, speech) as sides:
            yield _Session(context, parameters, sides, speech)


@dataclass
class _Session(Session[CallParameters]):
    sides: _Sides
    speech: Speech

    def run(self) -> None:
        """Make the calls one after the other, and write their observations.

        Raises:
            StepError: a call is not set up, is cut, or has no sound.
            CheckError: the host stalled in most utterances, or distorted the caller's speech.
        """
        parameters = self.parameters
        utterances = self.speech.within(parameters.duration)
        disturbed: list[bool] = []
        for number in range(1, parameters.calls + 1):
            if number > 1:
                time.sleep(parameters.pause)
            call = _Call(self.context, self.sides, self.speech, utterances, str(number))
            call.make()
            disturbed += call.disturbed
        judge_stalls(disturbed)


@contextmanager
def _open(context: Context, speech: Speech) -> Iterator[_Sides]:
    phone = context.open_ui(switches=[*_DEVICES, f"--use-file-for-fake-audio-capture={speech.quiet}"])
    peer = context.open_peer_ui(switches=[*_DEVICES, f"--use-file-for-fake-audio-capture={speech.sent}%noloop"])
    with phone as phone_ui, peer as peer_ui:
        yield _Sides(phone_ui, peer_ui)


class _Call:
    """One call from the desktop to the phone.

    Args:
        context: resources of the cell.
        sides: browsers at both ends.
        speech: recorded speech that the caller plays.
        said: utterances of the speech that belong to this call.
        name: number of the call, or ``control`` for the control call.
    """

    def __init__(self, context: Context, sides: _Sides, speech: Speech, said: Sequence[Utterance], name: str) -> None:
        self._context = context
        self._sides = sides
        self._speech = speech
        self._said = said
        self._name = name
        self._inbound: Mapping[str, float] = {}
        self._heard: quality.ReceivedUtterance | None = None
        self._said_at: dict[int, float] = {}
        self._stolen = stalls.Stolen(load.steal_s, time.time)
        self.disturbed: list[bool] = []
        """For each utterance in order: True if a stall of the host disturbed it."""

    def make(self) -> None:
        """Dial, answer, wait for the end of the speech, and hang up. Then write the observations of the call."""
        self._dial()
        self._stolen.look()
        self._wait_until_said()
        self._hang_up()
        self._observe()

    def judged(self) -> tuple[float, quality.Mos | None]:
        """Return the control call's share of concealed sound, 0 … 1, and the MOS of its first utterance.

        Raises:
            StepError: the call was not made, or is not the control call.
        """
        if self._heard is None:
            raise StepError(f"call {self._name}: it was not made")
        return concealed_share(self._inbound), self._heard.mos

    def _dial(self) -> None:
        sides, elements = self._sides, APP.elements
        target = APP.start.format(url=self._context.service(SERVICE)["url"], room=secrets.token_hex(8))
        for _, ui in sides.items():
            ui.open(target, timeout_s=_STEP_S)
        sides.desktop.tap(elements["dial"])
        try:
            sides.phone.tap(elements["answer"], timeout_s=_ANSWER_S)
        except StepError as error:
            state = sides.desktop.read(elements["state"])
            raise StepError(
                f"call {self._name}: the phone did not ring within {_ANSWER_S:g} s, the desktop is {state}: {error}"
            ) from error
        for who, ui in sides.items():
            try:
                ui.wait(elements["talking or failed"], timeout_s=_CONNECT_S)
            except StepError as error:
                state = ui.read(elements["state"])
                raise StepError(
                    f"call {self._name}: not connected within {_CONNECT_S:g} s: the {who} is {state}"
                ) from error
        self._check_state()

    def _check_state(self) -> None:
        for who, ui in self._sides.items():
            if ui.evaluate(page.STATE) == "failed":
                raise StepError(f"call {self._name}: failed at the {who}: {ui.read(APP.elements['problem'])}")

    def _wait_until_said(self) -> None:
        """Wait until 1.5 s after the caller's last word. Raises StepError if the call fails or no packet arrives."""
        began = float(page.events(self._sides.desktop)["talking"])
        end = began + self._said[-1].end_s + _TAIL_S
        listened, watched = False, time.time()
        while (left := end - time.time()) > 0:
            time.sleep(min(left, _LOOK_S))
            self._stolen.look()
            if time.time() < watched + _WATCH_S:
                continue
            watched = time.time()
            self._check_state()
            if not listened and time.time() > began + _FIRST_SOUND_S:
                self._check_sound()
                listened = True

    def _check_sound(self) -> None:
        statistics = page.statistics(self._sides.phone)
        inbound = statistics[-1].get("inbound", {}) if statistics else {}
        if not inbound.get("packetsReceived"):
            raise StepError(f"call {self._name}: no sound: connected, and no packet of it within {_FIRST_SOUND_S:g} s")

    def _hang_up(self) -> None:
        for _, ui in self._sides.items():
            ui.tap(APP.elements["hang up"])
        for _, ui in self._sides.items():
            ui.wait(APP.elements["ended or failed"], timeout_s=_STEP_S)
        self._check_state()

    def _observe(self) -> None:
        observe, sides, call = self._context.observe, self._sides, self._name
        statistics = {who: page.statistics(ui) for who, ui in sides.items()}
        candidates = {who: used_candidates(samples) for who, samples in statistics.items()}
        desktop, phone = page.events(sides.desktop), page.events(sides.phone)
        observe(
            "call",
            call=call,
            dialled_at=desktop["dialling"],
            answered_at=phone["answering"],
            connected_at=phone["connected"],
            setup_s=round(max(phone["connected"], desktop["connected"]) - phone["answering"], 6),
            ended_at=phone["ended"],
            candidates=candidates,
        )
        check_candidates(call, candidates)
        for who, samples in statistics.items():
            for sample in samples:
                observe("statistics", call=call, side=who, **sample)
        self._inbound = statistics["phone"][-1].get("inbound", {})
        heard = page.sound(sides.phone, "heard")
        file = f"recordings/call-{call}.wav"
        page.write_wav(self._context.cell_dir / file, heard.data, heard.rate_hz)
        recording = quality.from_bytes(heard.data, heard.rate_hz)
        if quality.is_silent(recording):
            length_s = len(recording) / quality.RATE_HZ
            raise StepError(f"call {call}: no sound: the {length_s:.0f} s that the phone recorded are silent")
        observe("heard", call=call, file=file, rate_hz=heard.rate_hz, gaps=heard.gaps, clock=heard.clock)
        self._observe_utterances(clock := Clock(heard.clock, heard.rate_hz))
        if self._name == CONTROL:
            self._rate_control(recording, clock)

    def _observe_utterances(self, player: Clock) -> None:
        """Write an observation ``utterance`` for each utterance, with its start at the caller and the stalls during it.

        Args:
            player: wall-clock times of the sound that the phone played.

        Raises:
            CheckError: the track of the caller's microphone does not have the recorded speech.
        """
        spoken = page.sound(self._sides.desktop, "spoken")
        first = self._said[0]
        reference = quality.read_wav(self._speech.reference)
        start, end = (round(at * quality.RATE_HZ) for at in (first.start_s, first.end_s))
        match = quality.find(reference[start:end], quality.from_bytes(spoken.data, spoken.rate_hz))
        if match.strength < _SAID_STRENGTH:
            raise CheckError(
                f"call {self._name}: the desktop did not send the recorded speech (correlation {match.strength:.2f}, "
                f"{spoken.gaps} gaps): the host is too busy"
            )
        observe, call = self._context.observe, self._name
        microphone = Clock(spoken.clock, spoken.rate_hz)
        observe("spoken", call=call, rate_hz=spoken.rate_hz, gaps=spoken.gaps, clock=spoken.clock)
        late = {who: page.late_beats(ui) for who, ui in self._sides.items()} | {"host": self._stolen.stalls}
        observe("stalls", call=call, **late)
        late["phone"] += player.pauses()
        late["desktop"] += microphone.pauses()
        offset_s = match.index / quality.RATE_HZ - first.start_s
        for utterance in self._said:
            said_at = round(microphone.time_at(offset_s + utterance.start_s), 6)
            item = {**asdict(utterance), "said_at": said_at}
            span = stalls.span_of(item)
            item["stalls_ms"] = {who: stalls.worst_ms(own_stalls, span) for who, own_stalls in late.items()}
            observe("utterance", call=call, **item, reference=REFERENCE)
            self._said_at[utterance.number] = said_at
            self.disturbed.append(stalls.is_disturbed(item))

    def _rate_control(self, recording: quality.Samples, clock: Clock) -> None:
        first = self._said[0]
        self._heard = quality.hear(
            quality.read_wav(self._speech.reference),
            recording,
            clock,
            bounds_s=(first.start_s, first.end_s),
            said_at=self._said_at[first.number],
        )


def used_candidates(statistics: Sequence[page.Sample]) -> list[page.Sample]:
    """Return the different ICE candidate pairs that a call used, according to its ``getStats`` samples."""
    seen: list[page.Sample] = []
    for sample in statistics:
        pair = {side: sample[side] for side in ("local", "remote") if side in sample}
        if pair and pair not in seen:
            seen.append(pair)
    return seen


def check_candidates(call: str, candidates: Mapping[str, Sequence[page.Sample]]) -> None:
    """Raise StepError unless both ends used only pairs of relays, and reached their relays over TCP.

    Args:
        call: name of the call, for the error message.
        candidates: name of an end of the call → ICE candidate pairs that this end used.
    """
    for who, used in candidates.items():
        if not used:
            raise StepError(f"call {call}: the {who} reports no candidate pair")
        for pair in used:
            local, remote = pair.get("local", {}), pair.get("remote", {})
            kinds = (local.get("candidateType"), local.get("relayProtocol"), remote.get("candidateType"))
            if kinds != ("relay", "tcp", "relay"):
                raise StepError(f"call {call}: the {who} used {kinds}; relays over TCP are required")


def concealed_share(inbound: Mapping[str, float]) -> float:
    """Return the share of concealed sound, 0 … 1 (W3C concealedSamples / totalSamplesReceived); 1 without sound."""
    total = inbound.get("totalSamplesReceived", 0)
    return inbound.get("concealedSamples", 0) / total if total else 1.0


def judge_control(concealed: float, mos: quality.Mos | None) -> None:
    """Raise CheckError if the control call has too large a share of concealed sound, or too low a wide-band MOS."""
    problems = []
    if concealed > CONTROL_CONCEALED:
        problems.append(f"{concealed:.1%} of its sound was concealed (allowed: {CONTROL_CONCEALED:.0%})")
    if mos is not None and mos.wide < CONTROL_MOS:
        problems.append(f"its wide-band MOS is {mos.wide:.2f} (minimum: {CONTROL_MOS:g})")
    if problems:
        raise CheckError(f"the control call over open links: {', '.join(problems)}: the host is too busy for calls")


def judge_stalls(disturbed: Sequence[bool]) -> None:
    """Raise CheckError if stalls of the host disturbed a larger share of utterances than `stalls.MOST_DISTURBED`."""
    if sum(disturbed) > stalls.MOST_DISTURBED * len(disturbed):
        raise CheckError(
            f"in {sum(disturbed)} of {len(disturbed)} utterances a browser or the host was blocked for more than "
            f"{stalls.DISTURBED_MS:g} ms (allowed: {stalls.MOST_DISTURBED:.0%}): the host is too busy for calls"
        )


SCENARIO = CallScenario()

"""Reconstruct from observations how clips were played, with segments, stalls and buffer; score video scenarios.

The observations are those of the scenarios `youtube` and `dailymotion`. Each has the number of the clip in the order of
the test (``visit``), the clip's name (``clip``) and the unix time of the event (``at``, s).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from mplab.analysis.metric import LOOK_RESOLUTION, NOT_NEGATIVE, Metric, Observation, Value, look_resolution

_PERCENT = (0.0, 100.0)
_ACTIVITY = "Playing video"
_metric = partial(Metric, source="nikravesh2016 §3.2", limits=NOT_NEGATIVE)
METRICS: tuple[Metric, ...] = (
    _metric(
        "startup_delay",
        "Startup delay, mean over clips",
        "s",
        "lower",
        headline=True,
        activity=_ACTIVITY,
        outcome="shows the first picture after {value}",
    ),
    _metric(
        "rebuffering_ratio",
        "Time without motion after the first picture",
        "%",
        "lower",
        headline=True,
        limits=_PERCENT,
        activity=_ACTIVITY,
        outcome="is without motion for {value} of the time",
    ),
    _metric(
        "mean_bitrate",
        "Bitrate of the video shown",
        "kbit/s",
        "higher",
        headline=True,
        activity=_ACTIVITY,
        outcome="shows video of {value}",
    ),
    _metric("rebuffering_count", "Stalls per clip", "", "lower"),
    _metric("rebuffering_time", "Time in stalls per clip", "s", "lower"),
    _metric("quality_switches", "Changes of quality per clip", "", "lower"),
    _metric("quality_time", "Share of the time shown in a quality", "%", "neither", ("quality",), limits=_PERCENT),
    _metric("segment_bitrate", "Bitrate of a clip's segments, mean over clips", "kbit/s", "higher", ("segment",)),
    _metric("clip_startup_delay", "Startup delay", "s", "lower", ("clip",)),
    _metric("buffer_level", "Video in the buffer, mean over time", "s", "higher"),
    _metric(
        "dropped_frames",
        "Frames dropped (check of the host)",
        "%",
        "lower",
        source="W3C Media Playback Quality: droppedVideoFrames",
        limits=_PERCENT,
    ),
    _metric(
        "host_stalls",
        "Stalls with video in the buffer, per clip (check of the host)",
        "",
        "lower",
        source="ui-scenarios/mplab/scenarios/base/scoring/playback.py",
    ),
    LOOK_RESOLUTION,
)

_END_S = 0.1
"""An event ``waiting`` at most this much video before the end of a clip, s, is no stall if the clip ended."""
_HOST_BUFFER_S = 1.0
"""A stall that begins with at least this much video in the buffer, s, is caused by the host.

Stalls that the network causes begin below 0.3 s.
"""


@dataclass(frozen=True)
class Segment:
    """A segment of video that the player has loaded.

    Attributes:
        number: number of the segment in the clip, from 0.
        height: height of the picture in lines, which names the quality.
        rate_kbps: bitrate of this quality in the manifest, kbit/s.
        start_s: position of the segment's start in the clip, s.
        duration_s: length of the segment, s.
        done: unix time at which the last byte had arrived, s.
    """

    number: int
    height: int
    rate_kbps: float
    start_s: float
    duration_s: float
    done: float

    def shown_s(self, until_s: float) -> float:
        """Return the length of the part of the segment before the position `until_s` of the clip, s."""
        return min(max(until_s - self.start_s, 0.0), self.duration_s)


@dataclass(frozen=True)
class PlayerSample:
    """State of the video player at one time.

    Attributes:
        at: unix time of the sample, s.
        media_s: playback position in the clip, s.
        buffer_s: length of the video in the buffer, s.
        frames: number of frames shown or dropped since the clip's start.
        dropped: number of frames dropped since the clip's start, because they were too late for the screen.
    """

    at: float
    media_s: float
    buffer_s: float
    frames: int
    dropped: int


@dataclass(frozen=True)
class Clip:
    """The playback of one clip, from the tap on the clip to the return to the list; times are unix times in s.

    Attributes:
        name: the clip's name.
        tapped: time of the tap.
        playing: time at which the picture began to move.
        end: time at which the clip ended or the user left it.
        shown_s: playback position in the clip at ``end``, s: the length of the part that was played.
        stalls: start and end of each stall with an empty buffer; of each stall if the player reports no buffer.
        host_stalls: number of stalls with video in the buffer, caused by the host; None if the player reports no
            segments.
        segments: video segments in the order of the clip; for a segment that was loaded twice, only the last load.
        samples: samples of the player's state in the order of time.
        heights: picture heights of the qualities that the site offers, lines, the smallest first.
    """

    name: str
    tapped: float
    playing: float
    end: float
    shown_s: float
    stalls: tuple[tuple[float, float], ...]
    host_stalls: int | None
    segments: tuple[Segment, ...]
    samples: tuple[PlayerSample, ...]
    heights: tuple[int, ...]

    @property
    def startup_delay_s(self) -> float:
        """Return the time from the tap until the picture began to move, s."""
        return self.playing - self.tapped

    @property
    def stalled_s(self) -> float:
        """Return the total length of `stalls`, s."""
        return sum(end - begin for begin, end in self.stalls)

    @property
    def watched_s(self) -> float:
        """Return the time from the first motion of the picture to `end`, stalls included, s."""
        return self.end - self.playing

    @property
    def shown(self) -> list[tuple[Segment, float]]:
        """Return the segments that were at least partly played, each with the length of its played part, s."""
        parts = [(segment, segment.shown_s(self.shown_s)) for segment in self.segments]
        return [(segment, seconds) for segment, seconds in parts if seconds > 0]

    @property
    def switches(self) -> int:
        """Return how often the quality changed from one played segment to the next."""
        heights = [segment.height for segment, _ in self.shown]
        return sum(height != following for height, following in pairwise(heights))


def clips_of(observations: Iterable[Observation]) -> list[Clip]:
    """Return in order the clips of a cell that were tapped, began to play, and then ended or were left."""
    visits: dict[int, list[Observation]] = defaultdict(list)
    for observation in observations:
        if "visit" in observation and "at" in observation:
            visits[int(observation["visit"])].append(observation)
    clips = [_clip(sorted(visits[visit], key=lambda record: float(record["at"]))) for visit in sorted(visits)]
    return [clip for clip in clips if clip is not None]


def _clip(records: Sequence[Observation]) -> Clip | None:
    tapped = _first(records, "tapped")
    playing = _first(records, "playing")
    over = _first(records, "ended") or _first(records, "left")
    if tapped is None or playing is None or over is None:
        return None
    begin, end = float(playing["at"]), float(over["at"])
    stalls = list(_stalls(records, begin, over))
    reports_segments = bool(_first(records, "segment"))
    offered = _first(records, "qualities")
    heights = sorted({int(quality["height"]) for quality in offered["qualities"]}) if offered else []
    return Clip(
        name=str(tapped["clip"]),
        tapped=float(tapped["at"]),
        playing=begin,
        end=end,
        shown_s=float(over["media_s"]),
        stalls=tuple((since, until) for since, until, buffer_s in stalls if buffer_s < _HOST_BUFFER_S),
        host_stalls=sum(buffer_s >= _HOST_BUFFER_S for _, _, buffer_s in stalls) if reports_segments else None,
        segments=tuple(_segments(records)),
        samples=tuple(_samples(records)),
        heights=tuple(heights),
    )


def _first(records: Sequence[Observation], event: str) -> Observation | None:
    return next((record for record in records if record["event"] == event), None)


def _stalls(records: Sequence[Observation], begin: float, over: Observation) -> Iterable[tuple[float, float, float]]:
    """Yield (start, end, buffer level at the start) of each stall of one clip: two unix times in s, and s of video."""
    end = float(over["at"])
    since: tuple[float, float] | None = None
    for record in records:
        at = float(record["at"])
        if not begin < at < end:
            continue
        if record["event"] == "waiting" and since is None and not _is_end(record, over):
            since = at, float(record["buffer_s"] or 0.0)
        elif record["event"] == "playing" and since is not None:
            yield since[0], at, since[1]
            since = None
    if since is not None:
        yield since[0], end, since[1]


def _is_end(record: Observation, over: Observation) -> bool:
    return over["event"] == "ended" and float(record["media_s"] or 0.0) > float(over["media_s"]) - _END_S


def _segments(records: Sequence[Observation]) -> list[Segment]:
    last: dict[int, Segment] = {}
    for record in records:
        if record["event"] == "segment" and record["kind"] == "video":
            segment = Segment(
                number=int(record["number"]),
                height=int(record["height"]),
                rate_kbps=float(record["rate_kbps"]),
                start_s=float(record["start_s"]),
                duration_s=float(record["duration_s"]),
                done=float(record["done"]),
            )
            last[segment.number] = segment
    return [last[number] for number in sorted(last)]


def _samples(records: Sequence[Observation]) -> Iterable[PlayerSample]:
    for record in records:
        if record["event"] == "sample":
            yield PlayerSample(
                at=float(record["at"]),
                media_s=float(record["media_s"]),
                buffer_s=float(record["buffer_s"]),
                frames=int(record["frames"]),
                dropped=int(record["dropped"]),
            )


def score(observations: Sequence[Observation], tables: object, folder: object) -> list[Value]:
    """Return the values of `METRICS` for a cell; an empty list if no clip began to play.

    - The startup delay is the time from the tap to the first event ``playing`` of the media element.
    - A stall lasts from ``waiting`` to the next ``playing`` or the end, and starts with less than 1 s in the buffer.
      The ratio is the time in stalls divided by the time from the first motion to the end.
    - Bitrates are those in the manifest, weighted by the time for which each segment was shown.
    - On Android the player is observed only by the screen, which shows neither segments nor the buffer. Bitrates,
      qualities, buffer level and checks of the host then have no values.
    """
    clips = clips_of(observations)
    if not clips:
        return []
    watched = sum(clip.watched_s for clip in clips)
    values = [
        Value("startup_delay", _mean([clip.startup_delay_s for clip in clips])),
        Value("rebuffering_count", _mean([len(clip.stalls) for clip in clips])),
        Value("rebuffering_time", _mean([clip.stalled_s for clip in clips])),
        *(Value("clip_startup_delay", clip.startup_delay_s, {"clip": clip.name}) for clip in clips),
    ]
    if watched > 0:
        values.append(Value("rebuffering_ratio", 100 * sum(clip.stalled_s for clip in clips) / watched))
    if segmented := [clip for clip in clips if clip.segments]:
        values.append(Value("quality_switches", _mean([clip.switches for clip in segmented])))
    if host := [clip.host_stalls for clip in clips if clip.host_stalls is not None]:
        values.append(Value("host_stalls", _mean(host)))
    values += look_resolution(observations)
    return [*values, *_quality(clips), *_segment_bitrates(clips), *_from_samples(clips)]


def _quality(clips: Sequence[Clip]) -> Iterable[Value]:
    """Yield the mean bitrate, and the share of played time in which each offered quality was shown, %."""
    shown = [pair for clip in clips for pair in clip.shown]
    seconds = sum(part for _, part in shown)
    if seconds == 0:
        return
    yield Value("mean_bitrate", sum(segment.rate_kbps * part for segment, part in shown) / seconds)
    by_height: dict[int, float] = dict.fromkeys(sorted({height for clip in clips for height in clip.heights}), 0.0)
    for segment, part in shown:
        by_height[segment.height] = by_height.get(segment.height, 0.0) + part
    for height, part in sorted(by_height.items()):
        yield Value("quality_time", min(100.0, 100 * part / seconds), {"quality": f"{height}p"})


def _segment_bitrates(clips: Sequence[Clip]) -> Iterable[Value]:
    rates: Mapping[int, list[float]] = defaultdict(list)
    for clip in clips:
        for segment, _ in clip.shown:
            rates[segment.number].append(segment.rate_kbps)
    for number in sorted(rates):
        yield Value("segment_bitrate", _mean(rates[number]), {"segment": f"{number + 1:02}"})


def _from_samples(clips: Sequence[Clip]) -> Iterable[Value]:
    levels = [sample.buffer_s for clip in clips for sample in clip.samples if clip.playing <= sample.at <= clip.end]
    if levels:
        yield Value("buffer_level", _mean(levels))
    last = [clip.samples[-1] for clip in clips if clip.samples]
    frames = sum(sample.frames for sample in last)
    if frames:
        yield Value("dropped_frames", 100 * sum(sample.dropped for sample in last) / frames)


def _mean(numbers: Sequence[float]) -> float:
    return sum(numbers) / len(numbers)

"""Make the clips of the two video sites with ffmpeg: once per machine, the same bytes everywhere.

A moving test picture (the film) is encoded once per quality, at a constant rate and without CABAC. A segment then has
the size of its quality and is cheap to decode: the network limits playback, not the host. Clips loop the film and are
cut into segments without encoding again.

The source of this module is part of the cache key: after an edit, all clips are made again.
"""

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mplab.base.errors import LabNotReadyError
from mplab.base.programs import Program

FFMPEG = Program("ffmpeg", ("ffmpeg",), ("-version",), "ffmpeg", "makes the clips of the video sites")

FRAMES_PER_S = 25
KEY_FRAMES_EVERY_S = 2
AUDIO_KBPS = 96
_FILM_S = 20
_TIMEOUT_S = 600.0
_AUDIO_RATE_HZ = 48_000


@dataclass(frozen=True)
class Quality:
    """One encoding of the film: height and width in pixels, and bit rate in kbit/s."""

    height: int
    width: int
    rate_kbps: int


QUALITIES = (
    Quality(240, 426, 250),
    Quality(360, 640, 500),
    Quality(480, 854, 1000),
    Quality(720, 1280, 2000),
    Quality(1080, 1920, 4000),
)


@dataclass(frozen=True)
class VideoSite:
    """The clips of a video site and their encoding.

    Attributes:
        segment_s: length of a segment, s; a multiple of `KEY_FRAMES_EVERY_S`.
        top: height of the best quality, pixels.
        clips: name of a clip → its length, s.
    """

    name: str
    segment_s: int
    top: int
    clips: Mapping[str, int]

    @property
    def qualities(self) -> tuple[Quality, ...]:
        """Return the qualities of the site, the lowest first."""
        return tuple(quality for quality in QUALITIES if quality.height <= self.top)


SHORT_CLIPS: Mapping[str, int] = {"clip-1": 25, "clip-2": 25, "clip-3": 25}
SITES = (
    VideoSite("tube", segment_s=2, top=720, clips={**SHORT_CLIPS, "long": 135}),
    VideoSite("motion", segment_s=4, top=1080, clips=SHORT_CLIPS),
)


def build_content(cache: Path) -> Path:
    """Make the clips, unless `cache` has them. Return the folder that has ``<site>/<clip>/manifest.mpd``.

    Raises:
        LabNotReadyError: ffmpeg is missing, failed, or took longer than `_TIMEOUT_S`.
    """
    root = cache / _key()
    if root.exists():
        return root
    partial = Path(tempfile.mkdtemp(prefix=f"{root.name}.", suffix=".partial", dir=cache))
    try:
        partial.chmod(0o755)
        film = partial / "film"
        film.mkdir()
        for quality in QUALITIES:
            _run(film_command(quality, film / f"{quality.height}.mp4"))
        for site in SITES:
            for number, (clip, seconds) in enumerate(site.clips.items(), 1):
                folder = partial / site.name / clip
                folder.mkdir(parents=True)
                _run(clip_command(site, film, folder, seconds=seconds, noise_seed=number))
        shutil.rmtree(film)
        _rename(partial, root)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return root


def film_command(quality: Quality, path: Path) -> list[str]:
    """Return the command that encodes the film in one quality, to the file `path`."""
    rate = f"{quality.rate_kbps}k"
    size = f"{quality.width}x{quality.height}"
    return [
        *_ffmpeg(),
        *("-f", "lavfi", "-i", f"testsrc2=size={size}:rate={FRAMES_PER_S}:duration={_FILM_S}"),
        *("-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-aspect", "16:9"),
        *("-b:v", rate, "-minrate", rate, "-maxrate", rate, "-bufsize", rate),
        # nal-hrd=cbr fills up to the rate where the picture needs less. One thread: the output depends on the number.
        "-x264-params",
        f"nal-hrd=cbr:keyint={_KEY_FRAMES}:min-keyint={_KEY_FRAMES}:scenecut=0:threads=1",
        *("-fflags", "+bitexact", "-flags:v", "+bitexact", str(path)),
    ]


def clip_command(site: VideoSite, film: Path, folder: Path, *, seconds: int, noise_seed: int) -> list[str]:
    """Return the command that makes one clip in `folder`: film segments in each quality of the site, and sound.

    Args:
        site: the site that shows the clip.
        film: folder with the encoded films.
        folder: folder that gets manifest and segments.
        seconds: length of the clip, s.
        noise_seed: seed of the sound, pink noise; another one for each clip.
    """
    inputs: list[str] = []
    maps: list[str] = []
    for number, quality in enumerate(site.qualities):
        inputs += ["-stream_loop", "-1", "-i", str(film / f"{quality.height}.mp4")]
        maps += ["-map", f"{number}:v"]
    noise = f"anoisesrc=color=pink:amplitude=0.3:seed={noise_seed}:sample_rate={_AUDIO_RATE_HZ}:duration={seconds}"
    return [
        *_ffmpeg(),
        *inputs,
        *("-f", "lavfi", "-i", noise),
        *maps,
        *("-map", f"{len(site.qualities)}:a", "-t", str(seconds)),
        *("-c:v", "copy", "-c:a", "aac", "-b:a", f"{AUDIO_KBPS}k", "-ac", "2"),
        *("-fflags", "+bitexact", "-flags:a", "+bitexact", "-map_metadata", "-1"),
        *("-f", "dash", "-seg_duration", str(site.segment_s), "-use_template", "1", "-use_timeline", "0"),
        *("-adaptation_sets", "id=0,streams=v id=1,streams=a"),
        *("-init_seg_name", "$RepresentationID$-init.mp4"),
        *("-media_seg_name", "$RepresentationID$-$Number%03d$.m4s"),
        str(folder / "manifest.mpd"),
    ]


_KEY_FRAMES = FRAMES_PER_S * KEY_FRAMES_EVERY_S


def _ffmpeg() -> list[str]:
    return [str(FFMPEG.path()), "-hide_banner", "-loglevel", "error", "-nostdin", "-y"]


def _key() -> str:
    """Return the cache key: a hash of ffmpeg's version and the source of this module."""
    return hashlib.sha256(FFMPEG.version().encode() + Path(__file__).read_bytes()).hexdigest()[:12]


def _run(argv: Sequence[str]) -> None:
    try:
        result = subprocess.run(argv, capture_output=True, text=True, errors="replace", timeout=_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise LabNotReadyError(f"dash: ffmpeg is not done after {_TIMEOUT_S:g} s") from error
    if result.returncode != 0:
        last = result.stderr.strip().splitlines()[-1:] or [f"exit code {result.returncode}"]
        raise LabNotReadyError(f"dash: ffmpeg cannot make {argv[-1]}: {last[0]}")


def _rename(partial: Path, root: Path) -> None:
    try:
        partial.rename(root)
    except OSError:
        if not root.exists():  # otherwise another process has made the same clips first
            raise

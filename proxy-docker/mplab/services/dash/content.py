"""The clips of the two video sites: made by ffmpeg, once, and the same everywhere.

A test picture in motion is encoded once for each quality, at a constant rate and without CABAC, so that a segment is as
large as its quality says and next to nothing to decode: the network decides, not the host. Clips are stretches of
that film, cut into segments without being encoded again.
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
    """One encoding of the film."""

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
    """What a site shows, and how.

    Attributes:
        segment_s: length of its segments; a multiple of `KEY_FRAMES_EVERY_S`.
        top: height of its best quality.
        clips: name → seconds.
    """

    name: str
    segment_s: int
    top: int
    clips: Mapping[str, int]

    @property
    def qualities(self) -> tuple[Quality, ...]:
        """What it offers, the least first."""
        return tuple(quality for quality in QUALITIES if quality.height <= self.top)


SHORT_CLIPS: Mapping[str, int] = {"clip-1": 25, "clip-2": 25, "clip-3": 25}
SITES = (
    VideoSite("tube", segment_s=2, top=720, clips={**SHORT_CLIPS, "long": 135}),
    VideoSite("motion", segment_s=4, top=1080, clips=SHORT_CLIPS),
)


def build_content(cache: Path) -> Path:
    """Make everything that is not in `cache` yet; ``<site>/<clip>/manifest.mpd`` is in the folder returned.

    Raises:
        LabNotReadyError: ffmpeg is missing, or failed.
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
    """The command that encodes the film in one quality."""
    rate = f"{quality.rate_kbps}k"
    size = f"{quality.width}x{quality.height}"
    return [
        *_ffmpeg(),
        *("-f", "lavfi", "-i", f"testsrc2=size={size}:rate={FRAMES_PER_S}:duration={_FILM_S}"),
        *("-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-aspect", "16:9"),
        *("-b:v", rate, "-minrate", rate, "-maxrate", rate, "-bufsize", rate),
        # Stuffing keeps the rate where the picture needs less; one thread, because the number of threads shows in the
        # result.
        "-x264-params",
        f"nal-hrd=cbr:keyint={_KEY_FRAMES}:min-keyint={_KEY_FRAMES}:scenecut=0:threads=1",
        *("-fflags", "+bitexact", "-flags:v", "+bitexact", str(path)),
    ]


def clip_command(site: VideoSite, film: Path, folder: Path, *, seconds: int, noise_seed: int) -> list[str]:
    """The command that makes one clip: segments of the film in every quality of the site, and sound."""
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
    """Names what this code makes with this ffmpeg."""
    return hashlib.sha256(FFMPEG.version().encode() + Path(__file__).read_bytes()).hexdigest()[:12]


def _run(argv: Sequence[str]) -> None:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, errors="replace", timeout=_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise LabNotReadyError(f"dash: ffmpeg is not done after {_TIMEOUT_S:g} s") from error
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        raise LabNotReadyError(f"dash: ffmpeg cannot make {argv[-1]}: {last[0]}")


def _rename(partial: Path, root: Path) -> None:
    try:
        partial.rename(root)
    except OSError:
        if not root.exists():  # else: somebody else was faster and made the same
            raise

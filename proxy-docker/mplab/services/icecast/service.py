"""Define the service `icecast`: a radio station, and a music service that serves tracks by byte range."""

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mplab.base.configs import render, write_private
from mplab.base.errors import DeviceError
from mplab.base.programs import CURL, UNSHARE, Program
from mplab.drivers.services import Service, ServiceContext, fetch

from .melody import FFMPEG, StationMelody, write_mp3

FOLDER = Path(__file__).resolve().parent
RADIO_HOST, MUSIC_HOST = "radio.lab", "music.lab"
PORT = 8000
MOUNT = "/live"
BURST_BYTES = 65_536
"""Bytes that a new listener gets at once: Icecast's default. This 4 s of sound fills the app's buffer (baerts2015
§6.2.1)."""
QUEUE_BYTES = 524_288
"""Bytes by which a listener may lag before Icecast disconnects it: Icecast's default, 33 s of sound."""
RADIO_KBPS = 128

RADIO = StationMelody.composed(seed=6, duration_s=240)
"""Melody that the radio station plays in a loop."""


@dataclass(frozen=True)
class Track:
    """A track of the music service, with its file name without suffix and its melody."""

    name: str
    melody: StationMelody


TRACK_KBPS = 160
TRACKS = tuple(
    Track(f"track-{number}", StationMelody.composed(seed=100 + number, duration_s=48)) for number in range(1, 6)
)
"""Tracks of 48 s: shorter than songs, so that a test of 75 s includes a change of track."""

ICECAST = Program("icecast2", ("icecast2", "icecast"), ("-v",), "icecast2", "the radio station")


class IcecastService(Service):
    """A radio station (Icecast, and a program that sends it the sound), and a music service, each with a web page."""

    name = "icecast"
    title = "Radio station and music service"
    network = "10.65.106.0/24"
    hosts: Mapping[str, str] = {RADIO_HOST: "10.65.106.1", MUSIC_HOST: "10.65.106.2"}
    ports = (PORT,)
    programs = (ICECAST, FFMPEG, UNSHARE, CURL)

    def prepare(self, context: ServiceContext) -> None:
        """Write Icecast's configuration with new passwords, and encode all melodies unless the cache has them."""
        password = secrets.token_hex(16)
        write_private(_password_file(context), password)
        configuration = render(
            FOLDER,
            "icecast.xml.j2",
            host=RADIO_HOST,
            address=self.hosts[RADIO_HOST],
            port=PORT,
            directory=context.installed.path(context.directory),
            burst_bytes=BURST_BYTES,
            queue_bytes=QUEUE_BYTES,
            source_password=password,
            other_password=secrets.token_hex(16),
        )
        write_private(context.directory / "icecast.xml", configuration)
        _make(RADIO, context.cache / "radio.mp3", RADIO_KBPS)
        (context.cache / "tracks").mkdir(exist_ok=True)
        for track in TRACKS:
            _make(track.melody, context.cache / "tracks" / f"{track.name}.mp3", TRACK_KBPS)
        (context.cache / "tracks" / "index.json").write_text(json.dumps([track.name for track in TRACKS]))

    def nginx(self, context: ServiceContext) -> str:
        """Return two nginx ``server`` blocks: one for the radio player and one for the music player."""
        return render(
            FOLDER,
            "nginx.conf.j2",
            radio_host=RADIO_HOST,
            radio_address=self.hosts[RADIO_HOST],
            music_host=MUSIC_HOST,
            music_address=self.hosts[MUSIC_HOST],
            www=context.installed.path(FOLDER / "www"),
            tracks=context.installed.path(context.cache / "tracks"),
        )

    def commands(self, context: ServiceContext) -> Mapping[str, Sequence[str]]:
        """Return the commands of Icecast and of ``source.py``, which sends the sound of the station to Icecast.

        Icecast runs as an unprivileged user, because it refuses to run as root.
        """
        where = context.installed
        station = [where.program(ICECAST), "-c", where.path(context.directory / "icecast.xml")]
        sound = [where.path(context.cache / "radio.mp3"), str(RADIO_KBPS)]
        to = [self.hosts[RADIO_HOST], str(PORT), MOUNT, where.path(_password_file(context))]
        return {
            "icecast": [*where.unprivileged(), *station],
            "icecast-source": [where.python(), "-I", where.path(FOLDER / "source.py"), *sound, *to],
        }

    def check(self, context: ServiceContext) -> None:
        """Check that Icecast receives sound, and that nginx serves the radio player and the list of tracks.

        Raises:
            DeviceError: Icecast has no source, or one of the URLs does not answer.
        """
        status = self._get(context, f"http://{self.hosts[RADIO_HOST]}:{PORT}/status-json.xsl")
        try:
            sources = json.loads(status)["icestats"].get("source")
        except (ValueError, KeyError) as error:
            raise DeviceError(self.name, f"Icecast's status cannot be read: {error}", stderr=status) from error
        if not sources:
            raise DeviceError(self.name, "Icecast has no source: the station is silent")
        for host, path in ((RADIO_HOST, "/"), (MUSIC_HOST, "/tracks/index.json")):
            self._get(context, f"http://{host}{path}")

    def _get(self, context: ServiceContext, url: str) -> str:
        answer = fetch(self, context, url, "--fail")
        if answer.exit_code != 0:
            raise DeviceError(self.name, f"{url} does not answer", stderr=answer.stderr)
        return answer.stdout

    def facts(self, context: ServiceContext) -> Mapping[str, str]:
        """Return the URLs of both web pages, port and mount point of the radio stream, and the melodies as JSON."""
        return {
            "radio_url": f"http://{RADIO_HOST}",
            "radio_port": str(PORT),
            "radio_mount": MOUNT,
            "radio_melody": json.dumps(RADIO.describe()),
            "music_url": f"http://{MUSIC_HOST}",
            "music_melodies": json.dumps({track.name: track.melody.describe() for track in TRACKS}),
        }


def _make(melody: StationMelody, path: Path, kbps: int) -> None:
    """Encode a melody as MP3 to `path`, unless a file ``.notes`` next to it shows that this is already done."""
    notes = path.with_suffix(".notes")
    described = json.dumps({**melody.describe(), "kbps": kbps})
    if not (path.exists() and notes.exists() and notes.read_text() == described):
        write_mp3(melody, path, kbps=kbps)
        notes.write_text(described)


def _password_file(context: ServiceContext) -> Path:
    return context.directory / "password"


SERVICE = IcecastService()

"""Answer ``screencap``, ``screenrecord`` and ``uiautomator``: the display as a picture, a video and an element tree."""

import asyncio
import contextlib
import io
import os
import re

from PIL import Image

from mplab.device.android.android import Android, Command
from mplab.device.android.state import State
from mplab.device.calls import CommandCall, CommandError
from mplab.device.screen.picture import draw
from mplab.device.system.system import kill_group

_DUMP_PATH = "/sdcard/window_dump.xml"
_LONGEST_S = 180.0
_FRAMES_PER_S = 5
_FFMPEG = "/usr/bin/ffmpeg"


async def _screencap(device: Android, call: CommandCall) -> int:
    words = [word for word in call.argv[1:] if word not in {"-p", "-j"}]
    while words and words[0].startswith("-"):
        words = words[2:]
    picture = await asyncio.to_thread(picture_of, device.state)
    if words:
        await _write_file(device, call, words[0], picture)
    else:
        await call.out(picture)
    return 0


async def _uiautomator(device: Android, call: CommandCall) -> int:
    words = call.argv[1:]
    if words[:1] != ["dump"]:
        raise CommandError("Usage: uiautomator <subcommand> [options]\n\nAvailable subcommands:\n\nhelp, dump", 1)
    if device.running_agents:
        await call.err("ERROR: could not get idle state.\n")
        return 1
    path = next((word for word in words[1:] if not word.startswith("--")), _DUMP_PATH)
    hierarchy = device.state.screen.current()
    if path in {"/dev/tty", "/dev/stdout"}:
        await call.out(hierarchy + f"UI hierchary dumped to: {path}\n")  # Android's own spelling
        return 0
    await _write_file(device, call, path, hierarchy.encode())
    await call.out(f"UI hierchary dumped to: {path}\n")
    return 0


async def _write_file(device: Android, call: CommandCall, path: str, data: bytes) -> None:
    where = os.path.join(call.cwd, path)  # noqa: PTH118 - a path of the device

    def write() -> None:
        with open(where, "wb") as file:  # noqa: PTH123
            file.write(data)

    try:
        await device.system.files(root=call.root).run(write)
    except OSError as error:
        raise CommandError(f"Error opening file: {path} ({error.strerror})") from None


async def _screenrecord(device: Android, call: CommandCall) -> int:
    options, path = _record_options(call.argv[1:])
    limit = min(float(options.get("--time-limit", _LONGEST_S)) or _LONGEST_S, _LONGEST_S)
    if limit < 0:
        raise CommandError("Time limit 0s outside acceptable range [1,180]")
    uid = 0 if call.root else 2000
    # Fragments: the written part is a valid film even after an abort.
    encoder = await device.system.spawn(
        [
            *(_FFMPEG, "-loglevel", "error", "-y", "-f", "rawvideo", "-pixel_format", "rgb24"),
            *("-video_size", "{}x{}".format(*film_size(device.state)), "-use_wallclock_as_timestamps", "1", "-i", "-"),
            *("-c:v", "libx264", "-preset", "ultrafast", "-threads", "1", "-pix_fmt", "yuv420p"),
            *("-movflags", "frag_keyframe+empty_moov", "-f", "mp4", os.path.join(call.cwd, path)),  # noqa: PTH118
        ],
        uid=uid,
    )
    call.handles_signals = True
    stop = asyncio.ensure_future(call.wait_signal())
    try:
        await asyncio.wait_for(_film(device, encoder, stop), limit)
    except TimeoutError:
        pass
    except asyncio.CancelledError:
        kill_group(encoder)
        raise
    finally:
        stop.cancel()
    err = await _finish(encoder)
    if encoder.returncode:
        raise CommandError(f"Unable to open '{path}': {err.decode(errors='replace').strip().splitlines()[-1:]}")
    return 0


async def _film(device: Android, encoder: asyncio.subprocess.Process, stop: "asyncio.Future[int]") -> None:
    assert encoder.stdin is not None  # noqa: S101 - it has pipes
    while not stop.done() and encoder.returncode is None:
        frame = await asyncio.to_thread(frame_of, device.state)
        with contextlib.suppress(ConnectionError):
            encoder.stdin.write(frame)
            await encoder.stdin.drain()
        await asyncio.wait({stop}, timeout=1 / _FRAMES_PER_S)


async def _finish(encoder: asyncio.subprocess.Process) -> bytes:
    """Close the input of the video encoder, and wait until it has written the file. Return its error output."""
    assert encoder.stdin is not None  # noqa: S101 - it has pipes
    assert encoder.stderr is not None  # noqa: S101
    encoder.stdin.close()
    err = await encoder.stderr.read()
    await encoder.wait()
    return err


def _record_options(words: list[str]) -> tuple[dict[str, str], str]:
    options: dict[str, str] = {}
    files = []
    while words:
        word, words = words[0], words[1:]
        if word in {"--verbose", "--bugreport", "--rotate"}:
            continue
        if word.startswith("--") and "=" in word:
            name, _, options_value = word.partition("=")
            options[name] = options_value
        elif word.startswith("--") and words:
            options[word], words = words[0], words[1:]
        else:
            files.append(word)
    if len(files) != 1:
        raise CommandError("Must specify output file (see --help).", 2)
    if not re.fullmatch(r"\d+(\.\d+)?", options.get("--time-limit", "1")):
        raise CommandError(f"Time limit {options['--time-limit']}s outside acceptable range [1,180]")
    return options, files[0]


_FILM_SCALE = 3


def picture_of(state: State) -> bytes:
    """Return a picture of the display as PNG. The picture is black if the display is off."""
    buffer = io.BytesIO()
    _image(state).save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()


def film_size(state: State) -> tuple[int, int]:
    """Return width and height of the frames of a screen recording, pixels. Both are even, as H.264 requires."""
    width, height = _size(state)
    return width // _FILM_SCALE // 2 * 2, height // _FILM_SCALE // 2 * 2


def frame_of(state: State) -> bytes:
    """Return the display as a frame of a screen recording: RGB, three bytes for each pixel, scaled to `film_size`."""
    return _image(state).resize(film_size(state), Image.Resampling.NEAREST).tobytes()


def _size(state: State) -> tuple[int, int]:
    return state.size_override or (state.model.screen.width, state.model.screen.height)


def _image(state: State) -> Image.Image:
    if not state.awake:
        return Image.new("RGB", _size(state))
    image = draw(state.screen.windows())
    return image.resize(_size(state)) if state.size_override else image


COMMANDS: dict[str, Command] = {
    "screencap": _screencap,
    "screenrecord": _screenrecord,
    "uiautomator": _uiautomator,
}

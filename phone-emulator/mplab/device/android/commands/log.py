"""Answer ``logcat``, which prints the phone's log, and ``log``, which writes to it."""

import asyncio
import calendar
import re
import time

from mplab.device.android.android import Android, Command
from mplab.device.android.state import LogLine
from mplab.device.calls import CommandCall, CommandError

_LEVELS = "VDIWEFS"
_WITH_VALUE = {"-v", "-b", "-t", "-T", "-s", "-e", "-m", "-f", "-r", "-n", "-G", "--pid", "--format", "--regex"}
_MOMENT = re.compile(r"(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)(\.\d+)?")


class _Options:
    """The options of a logcat command line."""

    def __init__(self, words: list[str]) -> None:
        self.clear = self.dump = self.size = False
        self.formats: set[str] = set()
        self.last: int | None = None
        self.since: float | None = None
        self.pattern: re.Pattern[str] | None = None
        self.most: int | None = None
        self.pid: int | None = None
        self.file = ""
        self.filters: dict[str, str] = {}
        remaining = list(words)
        while remaining:
            word = remaining.pop(0)
            if word.startswith("--") and "=" in word:
                word, _, value = word.partition("=")
            elif word in _WITH_VALUE:
                if not remaining:
                    raise CommandError(f"logcat: option requires an argument -- {word.lstrip('-')}")
                value = remaining.pop(0)
            else:
                value = ""
            self._take(word, value)

    def _take(self, word: str, value: str) -> None:
        if word in {"-c", "--clear"}:
            self.clear = True
        elif word in {"-d", "--dump"}:
            self.dump = True
        elif word in {"-g", "--buffer-size"}:
            self.size = True
        elif word in {"-v", "--format"}:
            self.formats |= set(value.split(","))
        elif word in {"-t", "-T"}:
            self.dump = self.dump or word == "-t"
            self._start(value)
        elif word in {"-e", "--regex"}:
            self.pattern = re.compile(value)
        elif word == "-m":
            self.most = int(value)
        elif word == "--pid":
            self.pid = int(value)
        elif word == "-f":
            self.file = value
        elif word == "-s":
            self.filters = {"*": "S", **_filter(value)}
        elif not word.startswith("-"):
            self.filters |= _filter(word)

    def _start(self, value: str) -> None:
        if value.isdigit():
            self.last = int(value)
        elif match := _MOMENT.fullmatch(value):
            month, day, hour, minute, second = (int(part) for part in match.groups()[:5])
            year = time.gmtime().tm_year
            moment = time.strptime(f"{year} {month} {day} {hour} {minute} {second}", "%Y %m %d %H %M %S")
            self.since = _seconds(moment) + float(match.group(6) or 0)
        else:
            try:
                self.since = float(value)
            except ValueError:
                raise CommandError(f"logcat: -t {value!r} not in '%m-%d %H:%M:%S.%q' format") from None

    def wants(self, line: LogLine, offset_s: float) -> bool:
        """Return whether a log line passes the filters. `offset_s`: phone's clock minus this machine's clock, s."""
        if self.since is not None and line.time + offset_s < self.since:
            return False
        if self.pid is not None and line.pid != self.pid:
            return False
        if self.pattern is not None and not self.pattern.search(line.text):
            return False
        least = self.filters.get(line.tag, self.filters.get("*", "V"))
        return _LEVELS.index(line.level) >= _LEVELS.index(least)


def _seconds(moment: time.struct_time) -> float:
    return float(calendar.timegm(moment))


def _filter(word: str) -> dict[str, str]:
    tag, _, level = word.partition(":")
    return {tag: (level or "V").upper().replace("*", "V")[:1]}


async def _logcat(device: Android, call: CommandCall) -> int:
    options = _Options(call.argv[1:])
    log = device.state.log
    if options.clear:
        log.clear()
        return 0
    if options.size:
        await call.out("main: ring buffer is 256 KiB (64 KiB consumed), max entry is 5120 B, max payload is 4068 B\n")
        return 0
    offset = device.state.clock_offset_s
    lines = [line for line in log.lines() if options.wants(line, offset)]
    if options.last is not None:
        lines = lines[len(lines) - min(options.last, len(lines)) :]
    written, seen = 0, log.last
    await call.out("--------- beginning of main\n")
    while True:
        if options.most is not None:
            lines = lines[: options.most - written]
        await call.out("".join(_format(line, options, offset) for line in lines))
        written += len(lines)
        if options.dump or (options.most is not None and written >= options.most):
            return 0
        await log.wait(seen)
        fresh, seen = log.lines(seen), log.last
        lines = [line for line in fresh if options.wants(line, offset)]


def _format(line: LogLine, options: _Options, offset_s: float) -> str:
    moment = line.time + offset_s
    if "epoch" in options.formats:
        stamp = f"{moment:18.6f}" if "usec" in options.formats else f"{moment:15.3f}"
    else:
        fraction = f"{int(moment % 1 * 1e6):06d}" if "usec" in options.formats else f"{int(moment % 1 * 1e3):03d}"
        year = "%Y-" if "year" in options.formats else ""
        stamp = time.strftime(f"{year}%m-%d %H:%M:%S", time.gmtime(moment)) + "." + fraction
        if "UTC" in options.formats or "zone" in options.formats:
            stamp += " +0000"
    tag = f"{line.tag:<8}"
    if "brief" in options.formats:
        return f"{line.level}/{tag}({line.pid:>5}): {line.text}\n"
    if "raw" in options.formats:
        return f"{line.text}\n"
    if "tag" in options.formats:
        return f"{line.level}/{tag}: {line.text}\n"
    if "time" in options.formats:
        return f"{stamp} {line.level}/{tag}({line.pid:>5}): {line.text}\n"
    return f"{stamp} {line.pid:>5} {line.pid:>5} {line.level} {tag}: {line.text}\n"


async def _log(device: Android, call: CommandCall) -> int:
    level, tag, words = "I", "log", call.argv[1:]
    while words and words[0].startswith("-"):
        option, words = words[0], words[1:]
        if option == "-p" and words:
            level, words = words[0].upper()[:1], words[1:]
        elif option == "-t" and words:
            tag, words = words[0], words[1:]
    device.state.log.add(tag, " ".join(words), level=level if level in _LEVELS else "I")
    await asyncio.sleep(0)
    return 0


COMMANDS: dict[str, Command] = {"logcat": _logcat, "log": _log}

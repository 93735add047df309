"""Answer ``am`` and ``monkey``: start and stop apps, send broadcasts, run instrumentation."""

import asyncio
import re
from collections.abc import Awaitable, Callable

from mplab.device.android.android import Android, Command
from mplab.device.android.commands.agents import run_agent
from mplab.device.calls import CommandCall, CommandError

_WITH_VALUE = {
    *("-a", "-d", "-t", "-i", "-c", "-n", "-p", "-f", "-S", "--user", "--display", "--windowingMode", "-P", "-R"),
    *("--esn", "--eu", "--grant-read-uri-permission"),
}
_WITH_TWO = {"-e", "--es", "--ez", "--ei", "--el", "--ef", "--eia", "--ela", "--esa"}
_BROWSERS = ("com.android.chrome", "org.mozilla.firefox")
_COMPONENT = re.compile(r"([A-Za-z][\w.]*)/([\w.$]+)")


class _Intent:
    """An Android intent, parsed from the words of an ``am`` command line."""

    def __init__(self, words: list[str]) -> None:
        self.action = self.data = self.component = self.package = ""
        self.wait = False
        self.extras: dict[str, str] = {}
        remaining = list(words)
        while remaining:
            word = remaining.pop(0)
            if word in _WITH_TWO and len(remaining) >= 2:
                self.extras[remaining[0]] = remaining[1]
                remaining = remaining[2:]
            elif word in _WITH_VALUE and remaining:
                self._take(word, remaining.pop(0))
            elif word == "-W":
                self.wait = True
            elif not word.startswith("-"):
                self._bare(word)

    def _take(self, word: str, value: str) -> None:
        if word == "-a":
            self.action = value
        elif word == "-d":
            self.data = value
        elif word == "-n":
            self.component = value
        elif word == "-p":
            self.package = value

    def _bare(self, word: str) -> None:
        if _COMPONENT.fullmatch(word):
            self.component = word
        elif ":" in word:
            self.data = word
        else:
            self.package = word

    def describe(self) -> str:
        """Return the intent as ``am`` prints it."""
        parts = [f"act={self.action}" if self.action else "", f"dat={self.data}" if self.data else ""]
        parts += [f"pkg={self.package}" if self.package else "", f"cmp={self.component}" if self.component else ""]
        text = " ".join(part for part in parts if part)
        return "Intent { " + text + (" (has extras) }" if self.extras else " }")


async def activity_command(device: Android, call: CommandCall) -> int:
    """Answer ``am VERB …``; the verb is ``call.argv[1]``. Raises CommandError for an unknown verb."""
    words = call.argv[1:]
    action = _VERBS.get(words[0]) if words else None
    if action is None:
        raise CommandError(f"Unknown command: {words[0]}" if words else "Activity manager commands:", 255)
    return await action(device, call, words[1:])


async def _start(device: Android, call: CommandCall, words: list[str]) -> int:
    intent = _Intent(words)
    if "-S" in words:
        await _stop(device, call, [intent.component.partition("/")[0]])
    await call.out(f"Starting: {intent.describe()}\n")
    package, _, activity = intent.component.partition("/")
    package = package or intent.package or _handler(device, intent)
    app = device.state.packages.get(package)
    if app is None or not app.enabled:
        return await _unknown(call, intent)
    already = device.processes.pid_of(package) is not None
    try:
        device.state.screen.start(package, activity or app.info.activity)
    except KeyError:
        return await _unknown(call, intent)
    if intent.data:
        device.state.screen.open(package, intent.data)
    await device.processes.start(app)
    shown = activity or app.info.activity
    device.state.log.add("ActivityTaskManager", f"START u0 {{cmp={package}/{shown}}} from uid 2000")
    device.state.log.add("ActivityTaskManager", f"Displayed {package}/{shown}: +412ms")
    if already:
        await call.err("Warning: Activity not started, its current task has been brought to the front\n")
    if intent.wait:
        state = "HOT" if already else "COLD"
        await call.out(
            f"Status: ok\nLaunchState: {state}\nActivity: {package}/{shown}\nTotalTime: 412\nWaitTime: 415\nComplete\n"
        )
    return 0


def _handler(device: Android, intent: _Intent) -> str:
    if intent.data.startswith(("http:", "https:")):
        return next((name for name in _BROWSERS if name in device.state.packages), "")
    if intent.action.startswith("android.settings."):
        return "com.android.settings"
    return ""


async def _unknown(call: CommandCall, intent: _Intent) -> int:
    if intent.component:
        name = "/".join(intent.component.split("/"))
        await call.err(f"Error type 3\nError: Activity class {{{name}}} does not exist.\n")
    else:
        await call.err(f"Error: Activity not started, unable to resolve {intent.describe()}\n")
    return 1


async def _stop(device: Android, _call: CommandCall, words: list[str]) -> int:
    for name in words:
        if name in device.state.packages:
            await device.processes.stop(name)
            device.state.screen.stop(name)
    return 0


async def _broadcast(device: Android, call: CommandCall, words: list[str]) -> int:
    intent = _Intent(words)
    if intent.action == "android.intent.action.AIRPLANE_MODE" and not call.root:
        raise CommandError(
            "\nException occurred while executing 'broadcast':\njava.lang.SecurityException: Permission Denial: "
            f"not allowed to send broadcast {intent.action} from pid=1, uid=2000",
            255,
        )
    await call.out(f"Broadcasting: {intent.describe()}\n")
    if intent.action == "android.intent.action.AIRPLANE_MODE":
        device.state.radios.airplane = device.state.settings["global"].get("airplane_mode_on") == "1"
        device.radios.update()
    for listener in device.broadcast_listeners:
        listener(intent.action, intent.component or intent.package, dict(intent.extras))
    device.state.log.add("ActivityManager", f"Broadcast {intent.action}")
    await call.out("Broadcast completed: result=0\n")
    return 0


async def _instrument(device: Android, call: CommandCall, words: list[str]) -> int:
    component = next((word for word in reversed(words) if "/" in word and not word.startswith("-")), "")
    if component not in device.agents:
        problem = f"Unable to find instrumentation info for: ComponentInfo{{{component}}}"
        await call.err(
            "INSTRUMENTATION_STATUS: id=ActivityManagerService\n"
            f"INSTRUMENTATION_STATUS: Error={problem}\nINSTRUMENTATION_STATUS_CODE: -1\n"
        )
        return 1
    arguments = [word for word in words if word != component]
    code = await run_agent(device, component, arguments, call.out)
    if code:
        await call.out("INSTRUMENTATION_RESULT: shortMsg=Process crashed.\nINSTRUMENTATION_CODE: 0\n")
    return 0


async def _kill_all(device: Android, _call: CommandCall, _words: list[str]) -> int:
    front = device.state.screen.focus()[0]
    for name in list(device.state.packages):
        if name != front:
            await device.processes.stop(name)
    return 0


async def _front(device: Android, call: CommandCall, words: list[str]) -> int:
    if words[:1] == ["list"]:
        name = "/".join(device.state.screen.focus())
        await call.out(f"RootTask id=1\n  taskId=1: {name} visible=true topActivity=ComponentInfo{{{name}}}\n")
    return 0


async def _service(device: Android, call: CommandCall, words: list[str]) -> int:
    intent = _Intent(words)
    package = intent.component.partition("/")[0] or intent.package
    app = device.state.packages.get(package)
    await call.out(f"Starting service: {intent.describe()}\n")
    if app is None:
        await call.err("Error: Not found; no service started.\n")
        return 1
    await device.processes.start(app)
    return 0


async def _quietly(_device: Android, _call: CommandCall, _words: list[str]) -> int:
    await asyncio.sleep(0)
    return 0


async def _monkey(device: Android, call: CommandCall) -> int:
    words = call.argv[1:]
    name = words[words.index("-p") + 1] if "-p" in words[:-1] else ""
    app = device.state.packages.get(name)
    if app is None or not app.info.activity:
        await call.err("** No activities found to run, monkey aborted.\n")
        return 251
    device.state.screen.start(name, app.info.activity)
    await device.processes.start(app)
    await call.out("Events injected: 1\n## Network stats: elapsed time=9ms (0ms mobile, 0ms wifi, 9ms not connected)\n")
    return 0


_VERBS: dict[str, Callable[[Android, CommandCall, list[str]], Awaitable[int]]] = {
    "start": _start,
    "start-activity": _start,
    "force-stop": _stop,
    "kill": _stop,
    "kill-all": _kill_all,
    "broadcast": _broadcast,
    "instrument": _instrument,
    "stack": _front,
    "startservice": _service,
    "start-service": _service,
    "start-foreground-service": _service,
    "stopservice": _quietly,
    "idle-maintenance": _quietly,
    "set-standby-bucket": _quietly,
    "wait-for-broadcast-idle": _quietly,
}

COMMANDS: dict[str, Command] = {"am": activity_command, "monkey": _monkey}

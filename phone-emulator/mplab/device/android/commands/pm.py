"""Answer ``pm`` and ``cmd package``: list, install, change and remove apps."""

import re
import time
from collections.abc import Awaitable, Callable, Sequence

from mplab.device.android.android import Android, Command
from mplab.device.android.apk import ApkError, read_apk
from mplab.device.android.state import InstallSession, Package
from mplab.device.calls import CommandCall, CommandError
from mplab.device.screen.protocol import InstalledPackage

_LARGEST_APK = 500_000_000
_MOST_SESSIONS = 16


async def package_command(device: Android, call: CommandCall) -> int:
    """Answer ``pm VERB …``; the verb is ``call.argv[1]``. Raises CommandError for an unknown verb."""
    words = call.argv[1:]
    if not words:
        await call.out("Package manager (package) commands:\n  help\n")
        return 255
    verb, arguments = words[0], _without_user(words[1:])
    action = _VERBS.get(verb)
    if action is None:
        raise CommandError(f"Unknown command: {verb}", 255)
    return await action(device, call, arguments)


def _without_user(words: list[str]) -> list[str]:
    if "--user" in words:
        at = words.index("--user")
        return words[:at] + words[at + 2 :]
    return words


def _named(device: Android, name: str) -> Package:
    package = device.state.packages.get(name)
    if package is None:
        raise CommandError(f"Error: package {name} not found", 1)
    return package


async def _list(device: Android, call: CommandCall, rest: list[str]) -> int:
    kind, *options = rest or [""]
    if kind == "packages":
        await call.out("".join(_package_lines(device, options)))
    elif kind == "features":
        names = ("android.hardware.wifi", "android.hardware.telephony", "android.hardware.touchscreen")
        await call.out("".join(f"feature:{name}\n" for name in names))
    elif kind == "users":
        await call.out("Users:\n\tUserInfo{0:Owner:c13} running\n")
    elif kind == "instrumentation":
        await call.out("".join(f"instrumentation:{name} (target=android)\n" for name in device.agents if "/" in name))
    else:
        raise CommandError(f"Error: unknown list type '{kind}'", 255)
    return 0


def _package_lines(device: Android, options: list[str]) -> list[str]:
    names = [word for word in options if not word.startswith("-")]
    lines = []
    for package in sorted(device.state.packages.values(), key=lambda package: package.info.name):
        info = package.info
        if ("-3" in options and info.system) or ("-s" in options and not info.system):
            continue
        if ("-d" in options and package.enabled) or ("-e" in options and not package.enabled):
            continue
        if names and names[0] not in info.name:
            continue
        line = f"package:{package.apk}={info.name}" if "-f" in options else f"package:{info.name}"
        line += f" versionCode:{info.version_code}" if "--show-versioncode" in options else ""
        line += "  installer=com.android.vending" if "-i" in options else ""
        line += f" uid:{package.uid}" if "-U" in options else ""
        lines.append(line + "\n")
    return lines


async def _path(device: Android, call: CommandCall, rest: list[str]) -> int:
    package = device.state.packages.get(rest[0]) if rest else None
    if package is None:
        return 1
    await call.out(f"package:{package.apk}\n")
    return 0


async def _clear(device: Android, call: CommandCall, rest: list[str]) -> int:
    name = rest[0] if rest else ""
    if name not in device.state.packages:
        await call.out("Failed\n")
        return 1
    await device.processes.stop(name)
    device.state.screen.clear(name)
    await call.out("Success\n")
    return 0


async def _grant(device: Android, call: CommandCall, rest: list[str]) -> int:
    verb = call.argv[1] if call.argv[0] == "pm" else call.argv[2]
    name, permission = rest[:2] if len(rest) >= 2 else ("", "")
    if name not in device.state.packages:
        raise CommandError(
            f"\nException occurred while executing '{verb}':\n"
            f"java.lang.IllegalArgumentException: Unknown package: {name}",
            255,
        )
    if not re.fullmatch(r"[a-z]\w*(\.\w+)+", permission):
        raise CommandError(
            f"\nException occurred while executing '{verb}':\n"
            f"java.lang.IllegalArgumentException: Unknown permission: {permission}",
            255,
        )
    granted = device.state.packages[name].granted
    (granted.add if verb == "grant" else granted.discard)(permission)
    return 0


def _enabling(*, enabled: bool, word: str) -> Callable[[Android, CommandCall, list[str]], Awaitable[int]]:
    async def action(device: Android, call: CommandCall, rest: list[str]) -> int:
        package = _named(device, rest[0] if rest else "")
        if not enabled and package.info.system and not call.root and device.state.model.sdk < 30:
            raise CommandError(f"Error: java.lang.SecurityException: Shell cannot change component state for {rest[0]}")
        package.enabled, package.chosen = enabled, word == "enabled"
        if not enabled:
            await device.processes.stop(package.info.name)
            device.state.screen.stop(package.info.name)
        await call.out(f"Package {package.info.name} new state: {word}\n")
        return 0

    return action


async def _install(device: Android, call: CommandCall, rest: list[str]) -> int:
    size, path = _size_and_path(rest)
    try:
        data = await (call.read_all(size) if size is not None and path in {"", "-"} else _read_file(device, path))
        info = read_apk(data)
    except (ApkError, OSError) as error:
        await call.out(f"Failure [INSTALL_PARSE_FAILED_NOT_APK: {error}]\n")
        return 1
    return await _add(device, call, info, size_bytes=len(data), options=rest)


def _size_and_path(words: Sequence[str]) -> tuple[int | None, str]:
    """Return the size after the option ``-S``, bytes or None, and the last word that belongs to no option, or ""."""
    size, path, left = None, "", list(words)
    while left:
        word = left.pop(0)
        if word == "-S" and left:
            size = int(left.pop(0))
        elif word in {"-i", "-p", "--abi", "--originating-uri", "--referrer", "--install-location"} and left:
            left.pop(0)
        elif not word.startswith("-"):
            path = word
    return size, path


async def _add(
    device: Android, call: CommandCall, info: InstalledPackage, *, size_bytes: int, options: Sequence[str]
) -> int:
    old = device.state.packages.get(info.name)
    if old is not None and info.version_code < old.info.version_code and "-d" not in options:
        await call.out(
            f"Failure [INSTALL_FAILED_VERSION_DOWNGRADE: Downgrade detected: Update version code {info.version_code} "
            f"is older than current {old.info.version_code}]\n"
        )
        return 1
    package = device.state.add_package(info)
    package.size_bytes = size_bytes
    if "-g" in options:
        package.granted.add("*")
    device.state.log.add("PackageManager", f"installed {info.name} {info.version}")
    await call.out("Success\n")
    return 0


async def _create_session(device: Android, call: CommandCall, rest: list[str]) -> int:
    if len(device.state.install_sessions) == _MOST_SESSIONS:
        raise CommandError("Error: java.lang.IllegalStateException: Too many active sessions", 255)
    number = next(device.state.session_numbers)
    device.state.install_sessions[number] = InstallSession(tuple(rest))
    await call.out(f"Success: created install session [{number}]\n")
    return 0


def _session(device: Android, word: str) -> InstallSession:
    session = device.state.install_sessions.get(int(word)) if word.isdigit() else None
    if session is None:
        raise CommandError(f"Error: java.lang.SecurityException: Caller has no access to session {word}", 255)
    return session


async def _write_session(device: Android, call: CommandCall, rest: list[str]) -> int:
    """Answer ``install-write -S SIZE SESSION NAME -``: add an APK to an installation session, from standard input."""
    size, _ = _size_and_path(rest)
    words = [word for word in rest if not word.startswith("-") and word != str(size)]
    session = _session(device, words[0] if words else "")
    session.apks.append(await call.read_all(min(size or 0, _LARGEST_APK)))
    await call.out(f"Success: streamed {size} bytes\n")
    return 0


async def _commit_session(device: Android, call: CommandCall, rest: list[str]) -> int:
    """Answer ``install-commit SESSION``: install the APKs of a session as one app.

    All must have the same package name; the first one gives the app's version.
    """
    session = _session(device, rest[0] if rest else "")
    del device.state.install_sessions[int(rest[0])]
    try:
        infos = [read_apk(data) for data in session.apks]
    except ApkError as error:
        await call.out(f"Failure [INSTALL_PARSE_FAILED_NOT_APK: {error}]\n")
        return 1
    names = {info.name for info in infos}
    if len(names) != 1:
        await call.out(f"Failure [INSTALL_FAILED_INVALID_APK: inconsistent packages: {', '.join(sorted(names))}]\n")
        return 1
    return await _add(device, call, infos[0], size_bytes=sum(map(len, session.apks)), options=session.options)


async def _abandon_session(device: Android, call: CommandCall, rest: list[str]) -> int:
    _session(device, rest[0] if rest else "")
    del device.state.install_sessions[int(rest[0])]
    await call.out("Success\n")
    return 0


async def _read_file(device: Android, path: str) -> bytes:
    def read() -> bytes:
        with open(path, "rb") as file:  # noqa: PTH123
            return file.read(_LARGEST_APK)

    return await device.system.files(root=True).run(read)


async def _uninstall(device: Android, call: CommandCall, rest: list[str]) -> int:
    names = [word for word in rest if not word.startswith("-")]
    package = device.state.packages.get(names[0]) if names else None
    if package is None or (package.info.system and "-k" not in rest and not call.root):
        await call.out("Failure [DELETE_FAILED_INTERNAL_ERROR]\n")
        return 1
    await device.processes.stop(package.info.name)
    device.state.screen.clear(package.info.name)
    del device.state.packages[package.info.name]
    await call.out("Success\n")
    return 0


async def _resolve(device: Android, call: CommandCall, rest: list[str]) -> int:
    name = rest[-1] if rest else ""
    package = device.state.packages.get(name)
    if package is None or not package.info.activity:
        await call.out("No activity found\n")
        return 0
    brief = "--brief" in rest
    priority = "priority=0 preferredOrder=0 match=0x108000 specificIndex=-1 isDefault=false\n"
    activity = f"{name}/{package.info.activity}\n"
    await call.out(priority + activity if brief else priority + f"  ActivityInfo:\n    name={activity}")
    return 0


async def _quietly(_device: Android, _call: CommandCall, _rest: list[str]) -> int:
    return 0


def dump_package(device: Android, name: str) -> str:
    """Return the output of ``dumpsys package NAME`` for the app `name`."""
    package = device.state.packages.get(name)
    if package is None:
        return f"Unable to find package: {name}\n"
    info = package.info
    moment = "%Y-%m-%d %H:%M:%S"
    first, last = (time.strftime(moment, time.gmtime(at)) for at in (package.installed_at, package.updated_at))
    flags = "SYSTEM HAS_CODE ALLOW_CLEAR_USER_DATA" if info.system else "HAS_CODE ALLOW_CLEAR_USER_DATA ALLOW_BACKUP"
    granted = "".join(
        f"        {permission}: granted=true, flags=[ USER_SET]\n" for permission in sorted(package.granted)
    )
    return (
        "Packages:\n"
        f"  Package [{name}] (5f1c2d3):\n"
        f"    userId={package.uid}\n"
        f"    pkg=Package{{b2a1c9e {name}}}\n"
        f"    codePath={package.apk.removesuffix('/base.apk')}\n"
        f"    primaryCpuAbi={device.state.abi}\n"
        f"    versionCode={info.version_code} minSdk=26 targetSdk={device.state.model.sdk}\n"
        f"    versionName={info.version}\n"
        f"    flags=[ {flags} ]\n"
        f"    firstInstallTime={first}\n"
        f"    lastUpdateTime={last}\n"
        "    installerPackageName=com.android.vending\n"
        f"    User 0: ceDataInode=131 installed=true hidden=false suspended=false stopped=false "
        f"notLaunched=false enabled={int(package.chosen) if package.enabled else 3} instant=false virtual=false\n"
        f"      runtime permissions:\n{granted}"
    )


_VERBS: dict[str, Callable[[Android, CommandCall, list[str]], Awaitable[int]]] = {
    "list": _list,
    "path": _path,
    "clear": _clear,
    "grant": _grant,
    "revoke": _grant,
    "enable": _enabling(enabled=True, word="enabled"),
    "default-state": _enabling(enabled=True, word="default"),
    "disable": _enabling(enabled=False, word="disabled"),
    "disable-user": _enabling(enabled=False, word="disabled-user"),
    "install": _install,
    "install-create": _create_session,
    "install-write": _write_session,
    "install-commit": _commit_session,
    "install-abandon": _abandon_session,
    "uninstall": _uninstall,
    "resolve-activity": _resolve,
    "trim-caches": _quietly,
    "compile": _quietly,
}

COMMANDS: dict[str, Command] = {"pm": package_command}

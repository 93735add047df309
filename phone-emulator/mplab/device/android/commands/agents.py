"""Answer ``app_process``, and run agents: the programs that UI test frameworks start on the phone.

Only one agent can run at a time, as on Android. A fault can kill it.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence

from mplab.device.android.android import Android, Command
from mplab.device.calls import CommandCall, CommandError
from mplab.device.screen.protocol import AgentContext

_REGISTERED = (
    "java.lang.IllegalStateException: UiAutomationService "
    "android.accessibilityservice.IAccessibilityServiceClient$Stub$Proxy@5deffd5already registered!\n"
)


async def run_agent(
    device: Android, name: str, arguments: Sequence[str], write: Callable[[str], Awaitable[None]]
) -> int:
    """Run an agent until it ends, is cancelled, or is killed. Return its exit code.

    Android allows only one agent at a time. While one runs, a second agent fails with an error message and exit code 1.

    Args:
        device: the phone.
        name: main class or instrumentation of the agent.
        arguments: words after the agent's name on the command line.
        write: function that writes the agent's output.
    """
    if device.running_agents:
        await write(_REGISTERED)
        return 1
    context = AgentContext(tuple(arguments), device.listen, write)
    task = asyncio.ensure_future(device.agents[name](context))
    device.running_agents[name] = task
    device.state.log.add("UiAutomation", f"agent {name} started")
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if task.cancelled():
            return 137  # the agent was killed; its caller continues
        task.cancel()
        raise
    except OSError as error:
        await write(f"java.net.BindException: {error.strerror}\n")
        return 1
    finally:
        device.running_agents.pop(name, None)
        device.state.log.add("UiAutomation", f"agent {name} ended", level="W")


def kill_agents(device: Android) -> list[str]:
    """Kill all running agents, as if they had crashed. Return their names."""
    names = list(device.running_agents)
    for task in device.running_agents.values():
        task.cancel()
    return names


async def _app_process(device: Android, call: CommandCall) -> int:
    """Answer ``CLASSPATH=… app_process DIR MAIN-CLASS ARG…``.

    Raises:
        CommandError: the folder or the class is missing.
    """
    words = call.argv[1:]
    while words and words[0].startswith("-"):
        words = words[1:]
    if len(words) < 2:
        raise CommandError("Usage: app_process [java-options] cmd-dir start-class-name [options]", 255)
    main, arguments = words[1], words[2:]
    classpath = call.env.get("CLASSPATH", "")
    if main not in device.agents or not classpath or not await _exists(device, classpath):
        await call.err(
            f"Error: Could not find class '{main}'\n"
            f"java.lang.ClassNotFoundException: {main}\n"
            f"\tat android.os.RuntimeInit (classpath: {classpath or 'not set'})\nAborted\n"
        )
        return 134
    end = asyncio.ensure_future(call.read_all())
    agent = asyncio.ensure_future(run_agent(device, main, arguments, call.out))
    try:
        # A caller over adb ends the agent by closing the stream.
        await asyncio.wait({agent, end}, return_when=asyncio.FIRST_COMPLETED)
        return agent.result() if agent.done() and not agent.cancelled() else 129
    finally:
        for task in (agent, end):
            task.cancel()


async def _exists(device: Android, path: str) -> bool:
    return await device.system.files(root=True).run(lambda: all(os.path.exists(part) for part in path.split(":")))  # noqa: PTH110


COMMANDS: dict[str, Command] = {"app_process": _app_process, "app_process64": _app_process}

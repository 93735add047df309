"""Run the agents of UI test frameworks. Only one runs at a time, as on Android; a fault can kill it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from mplab.device.android.android import Android
from mplab.device.screen.agents import AgentContext

_REGISTERED = (
    "java.lang.IllegalStateException: UiAutomationService "
    "android.accessibilityservice.IAccessibilityServiceClient$Stub$Proxy@5deffd5already registered!\n"
)


async def run_agent(
    device: Android, name: str, arguments: Sequence[str], write: Callable[[str], Awaitable[None]]
) -> int:
    """Run an agent until it ends, is cancelled, or is killed. Return its exit code.

    `arguments` are the words after the agent's name; `write` receives its output. Android has one connection for all
    agents: a second agent fails while the first one runs.
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
    """Kill all running agents, like a crash. Return their names."""
    names = list(device.running_agents)
    for task in device.running_agents.values():
        task.cancel()
    return names

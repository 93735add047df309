"""Bring the phone's interfaces up and down some time after their radios were switched."""

import asyncio

from mplab.device.android.state import State
from mplab.device.network import RMNET, WLAN, DeviceNetwork

_DOWN_DELAY_S = 0.1


class RadioControl:
    """Task that brings ``wlan0`` and ``rmnet0`` up and down according to the switches of the radios."""

    def __init__(self, state: State, network: DeviceNetwork) -> None:
        self._state = state
        self._network = network
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the task that follows the switches. Both interfaces must be down."""
        self._changed.set()
        self._task = asyncio.create_task(self._work())

    async def stop(self) -> None:
        """Stop the task that follows the switches. The interfaces keep their state."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    def update(self) -> None:
        """Notify the task that a switch has changed. The task changes the interfaces after a delay."""
        self._changed.set()

    @property
    def wants_wifi(self) -> bool:
        """Return whether ``wlan0`` must be up: WiFi is on, and there is a network to join."""
        radios = self._state.radios
        return radios.wifi and self._state.model.wifi is not None

    @property
    def wants_data(self) -> bool:
        """Return whether ``rmnet0`` must be up: data is on, airplane mode is off, and a SIM is loaded.

        While WiFi is up, the setting ``mobile_data_always_on`` must also be 1.
        """
        radios = self._state.radios
        sim = any(sim.state == "LOADED" for sim in self._state.model.sims)
        always = self._state.settings["global"].get("mobile_data_always_on", "1") == "1"
        return radios.data and sim and not radios.airplane and (always or not radios.wifi_up)

    async def _work(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            await self._reconcile()

    async def _reconcile(self) -> None:
        radios, log = self._state.radios, self._state.log
        if radios.wifi_up and not self.wants_wifi:
            await asyncio.sleep(_DOWN_DELAY_S)
            await self._network.down(WLAN)
            radios.wifi_up = False
            log.add("WifiService", "wlan0: disconnected, reason=3 locally_generated=1")
        if radios.data_up and not self.wants_data:
            await asyncio.sleep(_DOWN_DELAY_S)
            await self._network.down(RMNET)
            radios.data_up = False
            log.add("DcTracker", "cleanUpAllConnections: data disconnected")
        if self.wants_wifi and not radios.wifi_up and await self._settle():
            await self._network.up(WLAN)
            radios.wifi_up = True
            log.add("wpa_supplicant", "wlan0: CTRL-EVENT-CONNECTED - Connection completed")
        if self.wants_data and not radios.data_up and await self._settle():
            await self._network.up(RMNET)
            radios.data_up = True
            log.add("DcTracker", "onDataSetupComplete: success on rmnet0")
        if radios.data_up and not self.wants_data:
            self._changed.set()  # WiFi has just come up, and data must not be up next to it

    async def _settle(self) -> bool:
        """Wait for the phone's `radio_delay_s`. Return False if a switch changes during this time."""
        try:
            await asyncio.wait_for(self._changed.wait(), self._state.model.radio_delay_s)
        except TimeoutError:
            return True
        return False

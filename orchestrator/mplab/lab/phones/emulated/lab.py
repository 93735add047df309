"""Run the virtual lab around an emulated Android device, which is driven only by adb, like a real phone."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from mplab.base.errors import DeviceError
from mplab.base.paths import INTERFACES
from mplab.device import Device, DeviceSettings
from mplab.device.apps import lab_services, lab_variables
from mplab.drivers.capture import CapturePoint
from mplab.drivers.phone.adb import AdbPhone, AdbServer, settings_of
from mplab.drivers.phone.adb.radios import Radios
from mplab.drivers.phone.settings import AndroidPhoneFile
from mplab.lab.android import AndroidLab, AndroidSide, capture_points_of, check_there, facts_of, told_to_apps
from mplab.lab.driver import LabSettings
from mplab.lab.phones.emulated.driver import model_name
from mplab.lab.phones.virtual.lab import VirtualLab
from mplab.lab.topology import SCRATCH


class EmulatedLab(AndroidLab, VirtualLab):
    """The virtual lab with an emulated device in the node `phone`; see `Lab`."""

    phone: AdbPhone

    def __init__(self, settings: LabSettings) -> None:
        super().__init__(settings)
        self.endpoints = told_to_apps(self.endpoints, self._use)

    def _make_phone(self) -> AdbPhone:
        """Start the emulated device, connect it to an adb server of the lab, and prepare it for cells; return it."""
        settings = self._use.settings
        assert isinstance(settings, AndroidPhoneFile)  # noqa: S101 - its kind has chosen this lab
        node = self.nodes["phone"]
        there = {service.name for service in self._wanted}
        facts = {name: self.services.facts(name) for name in lab_services() if name in there}
        variables = lab_variables(facts, cacert=str(self.servers.ca_pem))
        device = Device(DeviceSettings(phone=model_name(settings), app_variables=variables), node)
        self._device = self._stack.enter_context(device)
        server = self._stack.enter_context(AdbServer(SCRATCH / "adb", log=self._logs / "adb-server.log"))
        phone = AdbPhone(self._use.phone, server, replace(settings_of(settings), serial=self._device.address))
        self._stack.enter_context(phone)
        Radios(phone).wait_up(*INTERFACES)
        self.android = AndroidSide(phone, settings, appium=self._appium_url, install=False)
        self.android.take_over(self.endpoints.proxy)
        return phone

    def describe(self) -> Mapping[str, object]:
        """Return the nodes and routers of the lab, and the phone's identity."""
        facts = {**facts_of(self.phone), "serial": self._device.serial, "address": self.phone.serial}
        return {**super().describe(), "phone": facts}

    def capture_points(self, *, direct: bool = False) -> list[CapturePoint]:
        """Return every capture point of a cell."""
        return [*capture_points_of(self.phone), self.proxy.capture_point]

    def _checks(self) -> list[Callable[[], None]]:
        return [self._check_device, partial(check_there, self.phone), *super()._checks()]

    def revive(self) -> list[str]:
        """Restart ended programs of the lab; return one sentence for each. See `Lab`.

        The device cannot be restarted during a run. Raises DeviceError if it has ended.
        """
        self._check_device()
        return [*self.phone.link.server.revive(), *super().revive()]

    def _check_device(self) -> None:
        if not self._device.running:
            raise DeviceError(self.phone.label, "the emulated device has ended by itself")

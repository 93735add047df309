"""The virtual lab around an emulated Android device, which is driven by adb alone, as a real phone is."""

from collections.abc import Mapping
from typing import Any

from orchestrator.capture import CapturePoint
from orchestrator.device import Device, DeviceSettings
from orchestrator.device.apps import lab_services, lab_variables
from orchestrator.errors import DeviceError
from orchestrator.lab import topology
from orchestrator.lab.android import AndroidSide
from orchestrator.lab.needs import DEFAULT_MODEL
from orchestrator.lab.virtual import SCRATCH, VirtualLab
from orchestrator.paths import INTERFACES
from orchestrator.phone.adb import AdbPhone, AdbServer, AdbSettings
from orchestrator.phone.adb.radios import Radios


class EmulatedLab(VirtualLab):
    """`Lab` whose phone is an emulated device in the node `phone`."""

    phone: AdbPhone

    def _make_phone(self) -> AdbPhone:
        """Switch the device on, and take it over by an adb server of the lab's own."""
        settings = self._use.android
        assert settings is not None  # noqa: S101 - its kind has chosen this lab
        node = self.nodes["phone"]
        there = {service.name for service in self._wanted}
        facts = {name: self.services.facts(name) for name in lab_services() if name in there}
        variables = lab_variables(facts, cacert=str(self.servers.ca_pem))
        model = settings.model or DEFAULT_MODEL
        device = Device(DeviceSettings(phone=model, app_variables=variables), node)
        self._device = self._stack.enter_context(device)
        server = self._stack.enter_context(AdbServer(SCRATCH / "adb", log=self._logs / "adb-server.log"))
        phone = AdbPhone(self._use.phone, server, AdbSettings(serial=self._device.address))
        self._stack.enter_context(phone)
        Radios(phone).wait_up(*INTERFACES)
        self.android = AndroidSide(phone, settings, appium=self._appium_url, install=False)
        self.android.take_over(self.endpoints.proxy)
        return phone

    def describe(self) -> Mapping[str, Any]:
        """The nodes, and the phone as it says what it is."""
        identity = vars(self.phone.identity())
        root = {"serial": self._device.serial, "address": self.phone.serial, "root": self.phone.root.value}
        return {**super().describe(), "phone": {**identity, **root}}

    def capture_points(self) -> list[CapturePoint]:
        """Every place where a cell's packets are captured."""
        points = {role: self.phone.devices.get(role, role) for role in (*topology.PHONE_INTERFACES, "lo")}
        return [
            *(CapturePoint(self.phone, device, f"phone-{role}.pcapng") for role, device in points.items()),
            self.proxy.capture_point,
        ]

    def check_alive(self) -> None:
        """Raise DeviceError when a program of the lab has died, or the phone cannot be reached."""
        if not self._device.running:
            raise DeviceError(self.phone.label, "the emulated device has ended by itself")
        if (state := self.phone.link.state()) != "device":
            raise DeviceError(self.phone.label, f"adb says it is {state or 'not there'}")
        super().check_alive()

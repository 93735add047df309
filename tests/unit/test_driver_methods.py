"""Every public method of a driver overrides one of its base class; nothing would call others."""

from collections.abc import Iterator
from inspect import isfunction

import pytest

from mplab.drivers.proxy import driver as proxies
from mplab.drivers.services import protocol as services
from mplab.drivers.shaper import driver as shapers
from mplab.drivers.transport import driver as transports
from mplab.lab import driver as phones


def own_methods() -> Iterator[tuple[type, str]]:
    for kind in (phones, shapers, proxies, transports, services):
        for driver in kind.DRIVERS.values():
            for name, member in vars(type(driver)).items():
                if isfunction(member) and not name.startswith("_"):
                    yield type(driver), name


@pytest.mark.parametrize(("driver", "name"), list(own_methods()))
def test_a_public_method_of_a_driver_is_one_of_its_base_class(driver: type, name: str) -> None:
    assert any(name in vars(base) for base in driver.__mro__[1:])

"""Variables that the scripted apps need of a lab."""

from pathlib import Path

import pytest

from mplab.base.errors import InputError
from mplab.device.apps import lab_services, lab_variables, ready_apps
from mplab.device.screen.load import load_script
from mplab.drivers.services import service_names

APP = """\
package: com.example.notes
title: Notes
activities: {.Main: list}
lab: {upload: {store: "{dropbox}/notes"}}
variables: {store: "", other: ""}
screens: {list: {widgets: [{text: "{store}"}]}}
"""


@pytest.fixture
def app(tmp_path: Path) -> Path:
    path = tmp_path / "notes.yaml"
    path.write_text(APP)
    return path


def test_facts_become_variables(app: Path) -> None:
    variables = lab_variables({"upload": {"dropbox": "https://x"}}, cacert="/ca.pem", apps=[load_script(app)])
    assert dict(variables) == {"cacert": "/ca.pem", "store": "https://x/notes"}


def test_service_that_is_not_there_leaves_its_apps_alone(app: Path) -> None:
    assert dict(lab_variables({}, cacert="/ca.pem", apps=[load_script(app)])) == {"cacert": "/ca.pem"}


def test_fact_that_is_not_there(app: Path) -> None:
    with pytest.raises(KeyError, match="dropbox"):
        lab_variables({"upload": {}}, cacert="", apps=[load_script(app)])


def test_variable_that_is_not_there(app: Path) -> None:
    app.write_text(APP.replace("variables: {store:", "variables: {shop:"))
    with pytest.raises(InputError, match=r"notes\.yaml:\d+: .*variable 'store'"):
        load_script(app)


def test_ready_apps_name_services_that_there_are() -> None:
    assert set(lab_services()) <= set(service_names())
    assert len({app.package for app in ready_apps()}) == len(ready_apps())

"""``python -m tests.docker.far URL FOLDER CONTAINER CONGESTION_CONTROL``: the driver over SSH, in a process of its own.

docker's SSH transport leaves a process for each connection to whoever collects it: not to the tests. A line for each
thing that was done; after ``captured`` it waits for a line.
"""

import sys
from pathlib import Path

from orchestrator.capture import Captures
from orchestrator.errors import DeviceError, LabNotReadyError
from orchestrator.proxy.docker.engine import connect
from orchestrator.proxy.docker.proxy import DockerProxy
from orchestrator.proxy.docker.sidecar import Sidecar


def main(url: str, folder: str, beside: str, congestion_control: str) -> None:
    """Use it, capture, and see it go."""
    client = connect(url)
    sidecar = Sidecar(client, image="mplab/capture:latest", project="mplab", beside=beside, free_mb=10)
    driver = DockerProxy(
        client,
        project="mplab",
        image="mplab/net:latest",
        sidecar=sidecar,
        interface="eth0",
        congestion_control=congestion_control,
    )
    driver.use({})
    captures = Captures([driver.capture_point], "headers", Path(folder))
    captures.start()
    captures.stop()
    driver.check_alive()
    print("captured", flush=True)
    sys.stdin.readline()
    try:
        driver.check_alive()
    except DeviceError as error:
        print(error, flush=True)
    try:
        connect(url)
    except LabNotReadyError as error:
        print(error, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

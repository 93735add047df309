"""Write an experiment file, a lab file, or a campaign file as a starting point."""

import os
from pathlib import Path
from typing import Annotated, Literal

import typer

from mplab.base.errors import InputError
from mplab.base.files import explained
from mplab.base.places import INSTALLED
from mplab.cli.output import out, output_file
from mplab.cli.schema import DIRECTORY, write_schemas

Kind = Literal["experiment", "lab", "campaign"]

_TEMPLATE = """\
# yaml-language-server: $schema={schema}
# Your experiment: change it, then run it.
#   mplab plan {name}.yaml     its cells, and their estimated time
#   mplab run {name}.yaml      run it; ends in a report
mplab: 1
name: {name}
title: WiFi, LTE or both?
seed: 1
repetitions: 5
transports: [sptcp-wifi, sptcp-lte, mptcp]     # mplab transports
links:                                          # mplab links; or your own:
  - name: my-links
    wifi: {{down: 20 Mbit/s, up: 5 Mbit/s, rtt: 30 ms}}
    lte: {{down: 12 Mbit/s, up: 4 Mbit/s, rtt: 60 ms, loss: 0.1 %}}
scenarios:                                      # mplab scenarios
  - download: {{sizes: [100 kB, 1 MB]}}
"""

_LAB_TEMPLATE = """\
# yaml-language-server: $schema={schema}
# Your lab: real routers, and the phones behind them. Without a router, use the virtual one at the end.
#   mplab doctor --lab {file}            check the lab; a remedy for each missing part
#   mplab router install {file}          install the dead-man's switch on the routers
#   mplab router shape {file} phone-1 --link baseline     shape by hand until Ctrl-C
mplab: 1
name: {name}
routers:
  wifi:
    driver: openwrt                 # OpenWrt 21.02 or later, over SSH
    host: 192.168.1.1
    # port: 22
    # user: root
    # key: ~/.ssh/id_ed25519        # private key without a passphrase; left out: the keys of the SSH agent
    # host_key: SHA256:…            # of the router: dropbearkey -y -f /etc/dropbear/dropbear_ed25519_host_key
    # known_hosts: ~/.ssh/known_hosts   # instead of host_key; this is the default
    interface: phy0-ap0             # towards the phones: the radio, not the bridge; see 'ip link' there
    flow_offload: refuse            # or switch-off: the router must not forward past its queues
    dead_man: 15 s                  # so long after the last contact, the router removes all shaping
    # radio:                        # its WiFi while mplab uses it; other settings stay unchanged
    #   device: radio0              # sections of /etc/config/wireless
    #   network: default_radio0
    #   enabled: true
    #   channel: 36
    #   tx_power_dbm: 10
    #   ssid: mplab
phones:
  phone-1:
    wifi: {{router: wifi, mac: "02:00:00:00:00:01"}}    # or ip: 192.168.1.23; neither: everything at the interface
    # lte: {{server: proxy, ip: 198.51.100.7}}          # see 'servers'; ip: the phone's address as the server sees it
    # lte: {{at: phone, interface: rmnet_data0}}        # or on the phone itself, with
    # root_shell: {{command: [adb, -s, SERIAL, shell, su, -c]}}
    # driver: adb                                     # runs use it by adb, with the proxy below; then no root_shell
    # serial: "0A1B2C3D"
# servers:                          # the cellular side: shaped where the proxy runs, or at any Linux server
#   proxy: {{host: proxy.example.org, interface: eth0}}     # without host: this machine

# For runs with a phone of 'driver: adb': proxy and origin as containers that the phone can reach; see
# router-configs/labs/bench.yaml.
# proxy: {{driver: docker, engine: ssh://lab@proxy.example.org, listen: [203.0.113.5]}}

# Without a router: a virtual phone behind a virtual router on this machine; the same driver shapes it.
# Use it instead of all the above, then: mplab run first.yaml --lab {file}
# routers:
#   wifi: {{driver: virtual}}
# phones:
#   phone-1:
#     driver: virtual
#     wifi: {{router: wifi}}          # lte is left out: the link emulator shapes it
"""

_CAMPAIGN_TEMPLATE = """\
# yaml-language-server: $schema={schema}
# Your campaign: several experiments, on all phones that they name.
#   mplab campaign {file} --dry-run      its jobs, their resources and estimated times
#   mplab campaign {file}                run it
#   mplab campaign install {file}        systemd units that start it every day
mplab_campaign: 1
name: {name}
experiments:                        # paths are relative to this file
  - first.yaml                      # mplab init first.yaml
  # - {{file: apps.yaml, lab: bench.yaml, phones: [phone-1, phone-2]}}     # a job on each phone
  # - {{file: first.yaml, vars: {{size: 10 MB}}, label: larger}}
# order: shuffled                   # another order each night
at: "22:00"                         # when systemd starts it
until: "06:00"                      # a run that would end later is not started
compare: {{window: 10}}               # each run with the ten before it; worse: exit code 4
keep_free: 5 GB                     # with less free disk space, runs wait
# breaker: {{failures: 2, rest: 10 min, rests: 2}}    # when a failing phone or router rests
# notify:                           # secrets are in files that only you can read (chmod 600)
#   webhook: {{url_file: ~/.config/mplab/webhook-url}}
#   on: [failed, worse, quarantined, disk, finished]
# retention: {{compress_after: 7 d, captures: 60 d}}  # of all runs in the folder; without it all are kept
"""

_KINDS = {
    "campaign": (_CAMPAIGN_TEMPLATE, "mplab campaign {file} --dry-run, then mplab campaign {file}"),
    "experiment": (_TEMPLATE, "mplab plan {file}, then mplab run {file}"),
    "lab": (_LAB_TEMPLATE, "mplab doctor --lab {file}"),
}


def init(
    file: Annotated[Path, typer.Argument(help="Write this file.", show_default=True, callback=output_file)] = Path(
        "first.yaml"
    ),
    *,
    kind: Annotated[Kind, typer.Option("--kind", help="Write a file of this kind.")] = "experiment",
) -> None:
    if file.exists():
        raise InputError(f"{file}: already exists. Name another file")
    if file.suffix not in {".yaml", ".yml"}:
        raise InputError(f"{file}: {'an' if kind == 'experiment' else 'a'} {kind} file ends in .yaml")
    name = "".join(c if c.isalnum() else "-" for c in file.stem.lower()).strip("-")[:40] or "first"
    template, steps = _KINDS[kind]
    if INSTALLED:
        write_schemas()
    where = os.path.relpath(DIRECTORY / f"{kind}.schema.json", file.resolve().parent)
    with explained(file):
        file.write_text(template.format(name=name, file=file, schema=where), encoding="utf-8")
    out.print(f"{file} is written. Next: {steps.format(file=file)}", markup=False)

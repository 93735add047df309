"""Translation of a link condition to traffic control, and of `tc`'s output back."""

from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from mplab.base.errors import LabNotReadyError
from mplab.drivers.shaper.protocol import PacketSelector
from mplab.drivers.shaper.tc.capabilities import parse_capabilities, wanted_for
from mplab.drivers.shaper.tc.offloads import parse_offloads
from mplab.drivers.shaper.tc.readback import differences, parse_options, parse_shaped
from mplab.drivers.shaper.tc.rules import (
    build_lines,
    change_lines,
    check_possible,
    filter_lines,
    in_flight_packets,
    netem_options,
    queue_options,
)
from mplab.format.direction import Direction, Discipline, GilbertElliott, Queue
from mplab.format.trace import Trace

LTE = Direction(rate_kbps=9185.0, delay_ms=35.0)


def test_one_direction() -> None:
    assert build_lines("mplab0d", LTE) == [
        "qdisc add dev mplab0d root handle 1: stab overhead -14 linklayer ethernet htb default 1",
        "class add dev mplab0d parent 1: classid 1:1 htb rate 9185000bit ceil 9185000bit "
        "burst 3028 cburst 3028 quantum 1514",
        "qdisc add dev mplab0d parent 1:1 handle 10: netem limit 1000 delay 35000us rate 10gbit",
        "qdisc add dev mplab0d parent 10:1 handle 20: bfifo limit 150000",
    ]


@pytest.mark.parametrize(
    ("direction", "options"),
    [
        (Direction(), "limit 1000 rate 10gbit"),
        (Direction(loss=0.5), "limit 1000 loss 0.5% rate 10gbit"),
        (Direction(delay_ms=9.5, jitter_ms=2.0), "limit 1000 delay 9500us 2000us rate 10gbit"),
        (
            Direction(delay_ms=9.0, jitter_ms=2.0, distribution="pareto"),
            "limit 1000 delay 9000us 2000us distribution pareto rate 10gbit",
        ),
        (
            Direction(loss=GilbertElliott(p_percent=1.0, r_percent=20.0, bad_loss_percent=90.0)),
            "limit 1000 loss gemodel 1% 20% 90% 0% rate 10gbit",
        ),
        (
            Direction(delay_ms=9.0, reorder_percent=3.0, duplicate_percent=1.0),
            "limit 1000 delay 9000us duplicate 1% reorder 3% rate 10gbit",
        ),
    ],
)
def test_netem(direction: Direction, options: str) -> None:
    assert netem_options(replace(direction, rate_kbps=1000.0)) == options


def test_queues_are_as_the_link_says() -> None:
    assert queue_options(Queue("packets", 77)) == "pfifo limit 77"
    assert queue_options(Queue()) == "bfifo limit 150000"
    assert queue_options(Queue(discipline="codel", target_ms=13)) == "codel limit 100 target 13000us interval 100000us"
    assert queue_options(Queue("packets", 9, "cake")) == "cake unlimited memlimit 18432"


def test_every_queue_discipline_of_a_link_file_has_a_qdisc() -> None:
    kinds = {name: queue_options(Queue("packets", 9, name)).split()[0] for name in get_args(Discipline)}
    assert kinds == {"drop-tail": "pfifo", "codel": "codel", "fq_codel": "fq_codel", "cake": "cake"}


def test_more_may_be_under_way_than_the_product() -> None:
    assert in_flight_packets(Direction(rate_kbps=1000, delay_ms=10)) == 1000
    assert in_flight_packets(Direction(rate_kbps=100_000, delay_ms=150)) == 4 * 1250


def test_a_change_keeps_what_waits_where_it_can() -> None:
    assert [line.split()[:2] for line in change_lines("x", LTE, replace(LTE, rate_kbps=100))] == [
        ["class", "change"], ["qdisc", "change"], ["qdisc", "change"],
    ]  # fmt: skip
    other_queue = replace(LTE, queue=Queue("packets", 10))
    assert [line.split()[1] for line in change_lines("x", LTE, other_queue)] == ["change", "change", "del", "add"]
    normal = replace(LTE, jitter_ms=1, distribution="normal")
    assert [line.split()[1] for line in change_lines("x", normal, LTE)] == ["change", "del", "add", "add"]


def test_filters() -> None:
    by_ip = filter_lines(PacketSelector("wlan0", ip="10.0.0.2"), 1, "u", "d")
    assert by_ip == [
        f"filter add dev wlan0 {direction} protocol ip prio 3 u32 "
        f"match ip {end} 10.0.0.2/32 action mirred egress redirect {to}"
        for direction, end, to in (("ingress", "src", "dev u"), ("egress", "dst", "dev d"))
    ]
    by_mac = filter_lines(PacketSelector("wlan0", mac="02:11:22:33:44:55"), 0, "u", "d")
    assert "protocol ipv6 prio 2 u32 match u32 0x02112233 0xffffffff at -8 match u16 0x4455 0xffff at -4" in by_mac[1]
    assert "egress protocol ip prio 1 u32 match u16 0x0211 0xffff at -14 match u32 0x22334455" in by_mac[2]
    assert ["match u32 0 0" in line for line in filter_lines(PacketSelector("wlan0"), 0, "u", "d")] == [True] * 4
    assert "match ip6 src fe80::1/128" in filter_lines(PacketSelector("wlan0", ip="fe80::1"), 0, "u", "d")[0]


@pytest.mark.parametrize(
    ("direction", "message"),
    [
        (Direction(trace=Trace(Path("/x"))), "a packet-delivery trace cannot be replayed"),
        (Direction(reorder_percent=1), "only where there is a delay"),
    ],
)
def test_what_traffic_control_cannot_do(direction: Direction, message: str) -> None:
    with pytest.raises(LabNotReadyError, match=message):
        check_possible(direction, "here")


SHOWN = """\
qdisc htb 1: root refcnt 2 r2q 10 default 0x1 direct_packets_stat 0 direct_qlen 32
 Sent 26192 bytes 334 pkt (dropped 7, overlimits 0 requeues 0)
 backlog 0b 0p requeues 0
qdisc netem 10: parent 1:1 limit 1000 delay 34.9ms  5ms loss 0.5% rate 10Gbit
 Sent 26192 bytes 334 pkt (dropped 7, overlimits 0 requeues 0)
 backlog 3Kb 5p requeues 0
qdisc bfifo 20: parent 10:1 limit 150000b
 Sent 26192 bytes 334 pkt (dropped 4, overlimits 0 requeues 0)
 backlog 0b 2p requeues 0
"""
CLASS = "class htb 1:1 root leaf 10: prio 0 rate 9185Kbit ceil 9185Kbit burst 3027b cburst 3027b\n"


def test_what_tc_prints_is_read_and_compared() -> None:
    shaped = parse_shaped(SHOWN + CLASS)
    netem = shaped.qdiscs["10:"]
    assert netem.settings == {"limit": 1000, "delay": 34900, "jitter": 5000, "loss": 0.5, "rate": 1e10}
    assert (netem.sent_packets, netem.dropped, netem.waiting) == (334, 7, 5)
    requested = {"10:": "netem limit 1000 delay 34900us 5000us loss 0.5% rate 10gbit", "20:": "bfifo limit 150000"}
    assert differences(requested, 9_185_000, shaped) == []
    wrong = {"10:": "netem limit 1000 delay 35900us 5000us rate 10gbit", "20:": "codel limit 9", "30:": "x"}
    assert differences(wrong, 9_000_000, shaped) == [
        "rate 9.185e+06 bit/s, 9e+06 requested",
        "netem delay 34900, 35900 requested",
        "netem loss 0.5, 0 requested",
        "bfifo 20:, codel requested",
        "no x 30:",
    ]
    assert differences({}, 1, parse_shaped("")) == ["no htb class"]


@pytest.mark.parametrize(("printed", "fits"), [("113ms", True), ("114ms", True), ("112ms", False), ("115ms", False)])
def test_tc_prints_three_digits_of_a_time(printed: str, fits: bool) -> None:
    shaped = parse_shaped(f"qdisc netem 10: parent 1:1 limit 1000 delay {printed}\n{CLASS}")
    assert (differences({"10:": "netem limit 1000 delay 113500us"}, 9_185_000, shaped) == []) is fits


@pytest.mark.parametrize(
    ("printed", "asked"),
    [
        ("limit 100000 delay 25ms loss gemodel p 1% r 20% 1-h 100% 1-k 0% duplicate 1% reorder 3% rate 10Gbit gap 1",
         "limit 100000 delay 25000us loss gemodel 1% 20% 100% 0% duplicate 1% reorder 3% rate 10gbit"),
        ("limit 1000 delay 1.25s  10.0ms", "limit 1000 delay 1250000us 10000us"),
        ("limit 100p target 5ms interval 100ms", "limit 100 target 5000us interval 100000us"),
    ],
)  # fmt: skip
def test_tcs_own_words_mean_what_was_asked(printed: str, asked: str) -> None:
    assert parse_options(printed) == parse_options(asked)


def test_capabilities_and_what_to_install() -> None:
    capabilities = parse_capabilities(
        "tc=/sbin/tc\ntc_version=tc utility, iproute2-5.0\ntc_real=/usr/libexec/tc-tiny\nboot=b\ncan=ifb\ncan=htb\n"
        "cannot=netem Error: Specified qdisc kind is unknown. \ncan=clsact\n"
        "offload=flow_offloading_hw\nno_interface=wlan9\nqdisc_at=wlan0 qdisc noqueue 0: root\n"
        "qdisc_at=wlan0 qdisc clsact ffff: parent ffff:fff1\n",
        openwrt=True,
    )
    assert capabilities.tiny
    assert capabilities.offloads == ("flow_offloading_hw",)
    assert list(capabilities.problems()) == [
        "tc-tiny has no netem: install tc-full: opkg install tc-full (or: apk add tc-full); it said: "
        "Error: Specified qdisc kind is unknown.",
        "no interface wlan9. Run 'ip link' on the machine to list them",
        "wlan0 has a qdisc of another program (clsact ffff:). Switch that program off (sqm? qosify?)",
    ]
    with pytest.raises(LabNotReadyError, match="r: no cake: install kmod-sched-cake"):
        capabilities.require("r", "cake")
    assert next(parse_capabilities("tc=\n", openwrt=True).problems()).startswith("no tc of iproute2")
    needs = [Direction(jitter_ms=1, distribution="normal"), Direction(queue=Queue("packets", 1, "codel")), LTE]
    assert wanted_for(needs) == ["codel", "normal"]


def test_on_the_phone_what_leaves_is_up() -> None:
    lines = filter_lines(PacketSelector("rmnet_data0", at_phone=True), 0, "u", "d", first=50_000)
    assert [(line.split()[4], line.split()[8], line.split()[-1]) for line in lines] == [
        ("egress", "50000", "u"), ("egress", "50001", "u"), ("ingress", "50000", "d"), ("ingress", "50001", "d"),
    ]  # fmt: skip


def test_an_interface_without_link_layer_has_no_header_to_take_off() -> None:
    assert build_lines("mplab0u", LTE, header_bytes=0)[0] == "qdisc add dev mplab0u root handle 1: htb default 1"


def test_what_one_call_of_tc_has_tried() -> None:
    capabilities = parse_capabilities(
        'tc=/sbin/tc\nboot=b\ncan=ifb\nsaid=Unknown qdisc "cake"\nsaid=hence no options\n'
        "said=Command failed -:12\nsaid=Error: Invalid handle.\nsaid=Command failed -:13\nsaid=Command failed -:27\n",
        openwrt=True,
    )
    assert capabilities.cannot == {"cake": 'Unknown qdisc "cake" hence no options'}
    assert {"ifb", "htb", "netem", "fq_codel", "seed", "normal", "clsact", "u32", "mirred"} <= capabilities.can
    without = parse_capabilities("tc=/sbin/tc\ncan=ifb\nsaid=unknown\nsaid=Command failed -:3\n")
    assert without.cannot == {"netem": "unknown"}, "what needs it was not tried"
    assert without.can == {"ifb", "htb", "clsact", "u32", "mirred"}


def test_a_seed_goes_with_netem_and_is_read_back() -> None:
    assert netem_options(Direction(loss=1.0), 4_000_000_007) == "limit 1000 loss 1% rate 10gbit seed 4000000007"
    assert " seed 7" in change_lines("x", LTE, LTE, 7)[1]
    printed = SHOWN.replace("rate 10Gbit", "seed 4000000007 rate 10Gbit")
    requested = {"10:": "netem limit 1000 delay 34900us 5000us loss 0.5% rate 10gbit seed 4000000007"}
    assert differences(requested, 9_185_000, parse_shaped(printed + CLASS)) == []
    other = {"10:": requested["10:"].replace("4000000007", "5")}
    assert differences(other, 9_185_000, parse_shaped(printed + CLASS)) == ["netem seed 4e+09, 5 requested"]


LINUX = (
    "tc=/usr/sbin/tc\nboot=b\ncan=ifb\ncannot=netem Error: Specified qdisc kind is unknown. \ncannot=pareto No file. \n"
    "type=eth0 1\ntype=rmnet_data0 519\nqdisc_at=eth0 qdisc mq 0: root\n"
    "qdisc_at=eth0 qdisc clsact ffff: parent ffff:fff1\nqdisc_at=eth1 qdisc ingress ffff: parent ffff:fff1\n"
)


def test_a_server_shares_a_clsact_and_needs_modules() -> None:
    capabilities = parse_capabilities(LINUX, openwrt=False)
    assert capabilities.shared == {"eth0"}
    assert capabilities.without_header == {"rmnet_data0"}
    problems = list(capabilities.problems())
    assert problems[0].startswith(
        "no netem: it needs the module sch_netem of its kernel (Debian: in linux-image; Ubuntu:"
    )
    assert problems[1] == "eth1 has a qdisc of another program (ingress ffff:). Switch that program off (sqm? qosify?)"
    assert "tables of distributions (package iproute2)" in capabilities.remedy("pareto")
    assert parse_capabilities(LINUX, openwrt=True).shared == frozenset()
    assert next(parse_capabilities("tc=\n", openwrt=False).problems()).endswith("the package iproute2")


def test_only_what_puts_packets_together_and_is_on_is_switched_off() -> None:
    shown = "eth0 tcp-segmentation-offload\neth0 rx-checksumming\neth1 generic-receive-offload\n"
    offloads = parse_offloads(shown, ["eth0", "eth1"])
    assert (offloads.on, offloads.fixed, offloads.warnings(openwrt=True)) == (
        {"eth0": ["tso"], "eth1": ["gro"]},
        {},
        [],
    )
    back, off = offloads.switch()
    assert off.splitlines() == [
        "ethtool -K 'eth0' tso off >/dev/null || return 1",
        "ethtool -K 'eth1' gro off >/dev/null || return 1",
    ]
    assert "[ ! -e /sys/class/net/'eth1' ] || ethtool -K 'eth1' gro on || failed=1" in back


def test_a_router_puts_together_what_it_receives_at_any_interface() -> None:
    shown = (
        "lo generic-receive-offload\nwan generic-receive-offload\nwan tcp-segmentation-offload\n"
        "phy0-ap0 generic-segmentation-offload\neth0 generic-receive-offload fixed\n"
    )
    offloads = parse_offloads(shown, ["phy0-ap0"])
    assert offloads.on == {"wan": ["gro"], "phy0-ap0": ["gso"]}
    assert offloads.warnings(openwrt=True) == [
        "eth0: gro cannot be switched off: packets that it joins are delayed and lost as one"
    ]
    (warning,) = parse_offloads("none\n", ["phy0-ap0"]).warnings(openwrt=True)
    assert warning == (
        "no ethtool: packets that the kernel joins (GRO) are delayed and lost as one. Install it: opkg install "
        "ethtool (or: apk add ethtool)"
    )
    assert parse_offloads("none\n", []).warnings(openwrt=False)[0].endswith("lost as one")


ROOTS = (
    "tc=/sbin/tc\nboot=b\ncan=ifb\n"
    "qdisc_at=wlan0 qdisc cake 800b: root refcnt 2 bandwidth 20Mbit diffserv3 triple-isolate nonat\n"
    "qdisc_at=wlan1 qdisc cake 800c: root refcnt 2 bandwidth unlimited diffserv3\n"
    "qdisc_at=eth0 qdisc htb 1: root refcnt 2 r2q 10 default 0x10\n"
    "qdisc_at=eth0 qdisc fq_codel 10: parent 1:10 limit 10240p\n"
    "qdisc_at=eth1 qdisc fq 0: root refcnt 2 limit 10000p\n"
    "qdisc_at=eth2 qdisc tbf 8001: root refcnt 2 rate 1Mbit burst 4Kb lat 50ms\n"
)


def test_a_root_qdisc_that_shapes_is_refused_on_a_router_and_a_warning_on_a_server() -> None:
    capabilities = parse_capabilities(ROOTS, openwrt=True)
    assert [problem for problem in capabilities.problems() if "root qdisc" in problem] == [
        f"{name} has a root qdisc of another program that shapes ({qdisc}). Switch that program off (sqm?)"
        for name, qdisc in (("wlan0", "cake 20Mbit"), ("eth0", "htb"), ("eth2", "tbf 1Mbit"))
    ]
    assert capabilities.warnings() == []
    server = parse_capabilities(ROOTS, openwrt=False)
    assert not any("already" in problem for problem in server.problems())
    assert server.warnings()[0] == "wlan0 has a root qdisc that shapes, too (cake 20Mbit)"


def test_tc_full_that_has_no_tables_of_distributions() -> None:
    error = "No distribution data for normal (/usr/lib/tc//normal.dist: No such file or directory)"
    capabilities = parse_capabilities(
        f"tc=/sbin/tc\ntc_real=/usr/libexec/tc-full\ncan=ifb\ncannot=normal {error}\n", openwrt=True
    )
    assert capabilities.remedy("normal") == (
        "no normal: OpenWrt's tc-full brings no tables of distributions: copy them from a Linux computer "
        f"(scp -O /usr/lib/tc/*.dist root@ROUTER:/usr/lib/tc/, after mkdir -p there); it said: {error}"
    )

"""The driver on a router: it applies all or nothing, reads it back, keeps phones apart, and undoes everything."""

import contextlib
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from mplab.base.errors import LabNotReadyError
from mplab.base.lock import default_lock_directory
from mplab.base.undo import UndoJournal, UndoStack
from mplab.drivers.shaper.openwrt import guard
from mplab.drivers.shaper.openwrt.driver import RadioFile
from mplab.drivers.shaper.openwrt.router import Router
from mplab.drivers.shaper.owner import Owner
from mplab.drivers.shaper.protocol import PacketSelector
from mplab.drivers.shaper.tc.readback import Settings
from mplab.drivers.shaper.tc.shell import MachineError
from mplab.drivers.shaper.tc.ssh import SshConnection
from mplab.format.direction import Direction, GilbertElliott, Queue
from mplab.format.path import PathCondition
from mplab.format.trace import Trace
from tests.router.conftest import Hold, found_on, settings_of, shaper_of
from tests.router.inside import MAC, SERVER
from tests.router.measure import Slot, ping
from tests.router.stand_in import StandInRouter

PHONE, PHONE2 = PacketSelector("vec0", ip="10.66.1.11"), PacketSelector("vec0", mac=MAC["phone2"])
SLOW = Direction(delay_ms=60.0)
FAST = Direction(delay_ms=10.0, rate_kbps=8000.0)
CAKE = replace(FAST, queue=Queue("packets", 50, "cake"))
PATH = PathCondition.of(8000, 2000, 40)


def rtt_ms(router: StandInRouter, phone: str = "phone") -> float:
    """Return the minimum round-trip time from a phone to the server, ms; a busy host adds nothing to it."""
    return ping(Slot(router.node(phone), "wlan0"), SERVER).rtt_ms_min


def least_lost_percent(router: StandInRouter, count: int, tries: int = 5) -> float:
    """Return the lowest `lost_percent` of `tries` attempts: a busy host loses some packets now and then."""
    lowest = 100.0
    for _ in range(tries):
        if (lowest := min(lowest, lost_percent(router, count))) == 0:
            break
    return lowest


def lost_percent(router: StandInRouter, count: int = 300) -> float:
    """Return the share of `count` small packets that do not come back, percent."""
    return ping(Slot(router.node("phone"), "wlan0"), SERVER, echoes=count).loss_percent


def netem_up(held: Router) -> Settings:
    """Return netem's settings for the packets from phone ``one``, as read from the router's kernel."""
    netem = held.shaping.state()["one"]["up"]["netem"]
    assert isinstance(netem, dict)
    return netem


def wait_until_given_back(router: StandInRouter, before: list[str], timeout_s: float = 60.0) -> None:
    deadline = time.monotonic() + timeout_s
    while (state := found_on(router)) != before:
        assert time.monotonic() < deadline, state
        time.sleep(0.5)


# --- Shaping ------------------------------------------------------------------------------------------------------


def test_two_phones_share_a_router_without_touching_each_other(router: StandInRouter, hold: Hold) -> None:
    with hold() as held:
        held.shaping.shape("one", PHONE, up=SLOW, down=SLOW)
        held.shaping.shape("two", PHONE2, up=FAST, down=FAST)
        slow_ms, fast_ms = rtt_ms(router), rtt_ms(router, "phone2")
        assert slow_ms == pytest.approx(120, rel=0.2)
        assert fast_ms < slow_ms / 2
        held.shaping.unshape("one")
        assert rtt_ms(router) < fast_ms
        assert rtt_ms(router, "phone2") > 20
        counters = held.shaping.counters()
        assert counters["two"]["up.packets_out"] >= 10
        assert "one" not in counters


def test_a_change_is_made_while_packets_pass(router: StandInRouter, hold: Hold) -> None:
    with hold() as held:
        held.shaping.shape("one", PHONE, up=SLOW, down=SLOW)
        bursts = Direction(loss=GilbertElliott(p_percent=30.0, r_percent=30.0))
        held.shaping.shape("one", PHONE, up=bursts, down=Direction(queue=Queue("packets", 50, "fq_codel")))
        assert netem_up(held)["ge-r"] == pytest.approx(30)
        assert 30 < lost_percent(router) < 70  # p / (p + r)
        jitter = Direction(delay_ms=20.0, jitter_ms=5.0, distribution="normal", duplicate_percent=50.0)
        held.shaping.shape("one", PHONE, up=jitter, down=replace(FAST, queue=Queue("bytes", 3000, "cake")))
        assert netem_up(held).items() >= {"delay": 20000.0, "jitter": 5000.0, "duplicate": 50.0}.items()
        assert "cake" in held.shaping.state()["one"]["down"]
        held.shaping.shape("one", PHONE, up=Direction(), down=Direction())
        assert least_lost_percent(router, 50) == 0


def test_a_rule_refused_half_way_leaves_nothing(router: StandInRouter, hold: Hold, ssh: SshConnection) -> None:
    cake = next(router.root.glob("lib/modules/*/**/sch_cake.ko"))
    with hold() as held:
        ssh.run("rmmod sch_cake")
        cake.rename(cake.with_suffix(".off"))
        try:
            with pytest.raises(MachineError, match=r"refused at 'qdisc add .*cake.*all of it was undone"):
                held.shaping.shape("one", PHONE, up=FAST, down=CAKE)
            assert "mplab" not in ssh.run("/sbin/tc qdisc show").stdout
            held.shaping.shape("one", PHONE, up=SLOW, down=SLOW)
            with pytest.raises(MachineError, match=r"refused at .*all of it was undone"):
                held.shaping.shape("one", PHONE, up=FAST, down=CAKE)
            assert netem_up(held)["delay"] == 60000
            assert rtt_ms(router) == pytest.approx(120, rel=0.2)
        finally:
            cake.with_suffix(".off").rename(cake)
            ssh.run("modprobe sch_cake")


def test_what_the_router_cannot_give_is_refused_before_anything_is_touched(router: StandInRouter, hold: Hold) -> None:
    attached = {"wifi": {"router": "wifi", "ip": "10.66.1.11"}}
    with hold() as held:
        shaper = shaper_of("one", attached, {"wifi": held})
        with pytest.raises(LabNotReadyError, match="packet-delivery trace"):
            held.shaping.shape("one", PHONE, up=Direction(trace=Trace(Path("/a/b"))), down=Direction())
        with pytest.raises(LabNotReadyError, match="no machine of the lab file shapes rmnet0, only wlan0"):
            shaper.apply({"wlan0": PATH, "rmnet0": PATH}, seed=1)
        with pytest.raises(LabNotReadyError, match="behind the proxy"):
            shaper.apply({"wlan0": PATH}, seed=1, core_rtt_ms=10)
        assert held.shaping.state() == {}
        assert rtt_ms(router) < PATH.rtt_ms / 2


def test_several_routers_at_once(router: StandInRouter, hold: Hold, tmp_path: Path) -> None:
    attached = {"wifi": {"router": "wifi", "ip": "10.66.1.11"}, "lte": {"router": "other", "interface": "vec2"}}
    with StandInRouter(tmp_path) as second, hold() as held, UndoStack() as undo:
        settings = settings_of(second)
        connection = SshConnection("other", settings)
        connection.connect()
        guard.install(connection)
        connection.close()
        with Router("other", settings, owner=Owner(undo), interfaces=("vec2",)) as other:
            shaper = shaper_of("one", attached, {"wifi": held, "other": other})
            shaper.apply({"wlan0": PATH, "rmnet0": PATH}, seed=1)
            state = shaper.state()
            assert [state[interface]["where"] for interface in ("wlan0", "rmnet0")] == ["router wifi", "router other"]
            assert state["rmnet0"]["down"]["rate_bps"] == state["wlan0"]["down"]["rate_bps"] == 8_000_000
            shaper.clear()
            assert other.shaping.state() == {}


# --- Who may use it -----------------------------------------------------------------------------------------------


def test_two_runs_want_one_router(
    router: StandInRouter, hold: Hold, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hold() as held:
        held.shaping.shape("one", PHONE, up=SLOW, down=SLOW)
        with pytest.raises(LabNotReadyError, match=r"in use by run test"), hold():
            pass
        monkeypatch.setattr("mplab.base.lock.default_lock_directory", lambda: tmp_path / "another-host")
        with pytest.raises(LabNotReadyError, match=r"router wifi: held by test@.*, last heard \d+ s ago"), hold():
            pass
        monkeypatch.setattr("mplab.base.lock.default_lock_directory", default_lock_directory)
        assert rtt_ms(router) > 100, "the first run's shaping is as it was"


def test_wrong_host_key(router: StandInRouter, tmp_path: Path) -> None:
    wrong = settings_of(router, host_key="SHA256:" + "A" * 43)
    with pytest.raises(LabNotReadyError, match=r"wrong host key: SHA256:.* found, host_key of the lab file"):
        SshConnection("wifi", wrong).connect()
    known = tmp_path / "known"
    known.write_text("")
    with pytest.raises(LabNotReadyError, match="unknown host key"):
        SshConnection("wifi", settings_of(router, host_key=None, known_hosts=str(known))).connect()
    other = "AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"
    known.write_text(f"[127.0.0.1]:{router.port} ssh-ed25519 {other}\n")
    with pytest.raises(LabNotReadyError, match=r"wrong host key: .* known\. If the router was installed again"):
        SshConnection("wifi", settings_of(router, host_key=None, known_hosts=str(known))).connect()
    known.write_text(f"[127.0.0.1]:{router.port} {router.host_key}\n")
    right = SshConnection("wifi", settings_of(router, host_key=None, known_hosts=str(known)))
    right.connect()
    right.close()


def test_unreachable_and_a_key_that_is_not_accepted(router: StandInRouter, tmp_path: Path) -> None:
    with pytest.raises(LabNotReadyError, match=r"wifi \(root@127.0.0.1:1\): unreachable: .*Unable to connect"):
        SshConnection("wifi", settings_of(router, port=1)).connect()
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "other")], check=True)
    with pytest.raises(LabNotReadyError, match=r"login refused: root does not accept the key .*other"):
        SshConnection("wifi", settings_of(router, key=str(tmp_path / "other"))).connect()
    with pytest.raises(LabNotReadyError, match="no such file"):
        SshConnection("wifi", settings_of(router, key=str(tmp_path / "none"))).connect()


# --- What it lacks ------------------------------------------------------------------------------------------------


def test_without_tc(router: StandInRouter, hold: Hold) -> None:
    tc = router.root / "sbin" / "tc"
    tc.rename(tc.with_suffix(".off"))
    try:
        with pytest.raises(LabNotReadyError, match=r"no tc of iproute2\. Install it: opkg install tc-full"), hold():
            pass
    finally:
        tc.with_suffix(".off").rename(tc)


def test_without_netem_and_with_a_foreign_qdisc(router: StandInRouter, hold: Hold, ssh: SshConnection) -> None:
    netem = next(router.root.glob("lib/modules/*/**/sch_netem.ko"))
    ssh.run("rmmod sch_netem && /sbin/tc qdisc add dev vec0 clsact")
    netem.rename(netem.with_suffix(".off"))
    try:
        with pytest.raises(LabNotReadyError, match=r"install kmod-netem.*vec0 has a qdisc of another program"), hold():
            pass
    finally:
        netem.with_suffix(".off").rename(netem)
        ssh.run("modprobe sch_netem; /sbin/tc qdisc del dev vec0 clsact")


def test_flow_offload_and_radio_are_switched_and_switched_back(
    router: StandInRouter, hold: Hold, ssh: SshConnection
) -> None:
    config = router.root / "etc" / "config"
    options = {"firewall.@defaults[0]": "defaults", "firewall.@defaults[0].flow_offloading": "1"}
    options |= {
        "wireless.radio0": "wifi-device",
        "wireless.radio0.channel": "1",
        "wireless.default_radio0": "wifi-iface",
    }
    for name, value in options.items():
        (config / name).write_text(f"{value}\n")
    ssh.run("/etc/init.d/firewall reload")
    before = found_on(router)
    try:
        with pytest.raises(LabNotReadyError, match="flow_offloading of its firewall lets packets bypass"), hold():
            pass
        assert found_on(router) == before
        with hold(flow_offload="switch-off", radio={"channel": 36, "ssid": "it's mplab"}) as held:
            assert ssh.run("cat /tmp/offloading; uci get wireless.radio0.channel").stdout == "0\n36\n"
            assert ssh.run("uci get wireless.default_radio0.ssid").stdout == "it's mplab\n"
            held.set_radio(RadioFile.model_validate({"enabled": False}))
            assert "vec0: <BROADCAST,MULTICAST>" in ssh.run("ip link show vec0").stdout
            with pytest.raises(MachineError, match=r"no wireless\.radio7"):
                held.set_radio(RadioFile.model_validate({"device": "radio7", "channel": 1}))
        assert found_on(router) == before
    finally:
        for name in options:
            (config / name).unlink()
        ssh.run("rm -rf /tmp/offloading /tmp/.uci")


def test_a_router_puts_no_packets_together_meanwhile(router: StandInRouter, hold: Hold, ssh: SshConnection) -> None:
    receive = "for d in vec0 vec1 vec2; do ethtool -k $d | grep generic-receive-offload; done"
    on, off = "generic-receive-offload: on\n" * 3, "generic-receive-offload: off\n" * 3
    assert ssh.run(receive).stdout == on
    with hold() as held:
        assert ssh.run(receive).stdout == off, "what it forwards is put together where it is received"
        assert held.warnings == []
    assert ssh.run(receive).stdout == on


def test_without_ethtool_and_with_a_root_qdisc_that_limits(
    router: StandInRouter, hold: Hold, ssh: SshConnection
) -> None:
    ethtool = router.root / "usr" / "sbin" / "ethtool"
    ethtool.rename(ethtool.with_suffix(".off"))
    try:
        attached = {"wifi": {"router": "wifi", "ip": "10.66.1.11"}}
        with hold() as held:
            (warning,) = shaper_of("one", attached, {"wifi": held}).warnings()
            assert warning.startswith("router wifi: no ethtool: packets that the kernel joins (GRO) are delayed")
    finally:
        ethtool.with_suffix(".off").rename(ethtool)
    ssh.run("/sbin/tc qdisc add dev vec0 root cake bandwidth 20mbit")
    try:
        with (
            pytest.raises(LabNotReadyError, match=r"vec0 has a root qdisc of another program that shapes \(cake 20M"),
            hold(),
        ):
            pass
    finally:
        ssh.run("/sbin/tc qdisc del dev vec0 root")


def test_a_full_tmp_is_not_a_holder(router: StandInRouter, hold: Hold, ssh: SshConnection) -> None:
    ssh.run("dd if=/dev/zero of=/tmp/fill bs=64k 2>/dev/null", check=False, timeout_s=120)
    try:
        with pytest.raises(LabNotReadyError, match=r"mplab cannot be written to: No space left on device"), hold():
            pass
    finally:
        ssh.run("rm /tmp/fill; rm -rf /tmp/mplab")


# --- When something dies --------------------------------------------------------------------------------------------


def test_a_dead_mans_switch_that_dies_is_started_again(router: StandInRouter, hold: Hold, ssh: SshConnection) -> None:
    with hold(dead_man="20 s"):
        first = ssh.run("cat /var/run/mplab-guard.pid; kill -9 $(cat /var/run/mplab-guard.pid)").stdout
        deadline = time.monotonic() + 60
        while (now := ssh.run("cat /var/run/mplab-guard.pid").stdout) == first:
            assert time.monotonic() < deadline, "no heartbeat has seen that it is dead"
            time.sleep(0.5)
        assert ssh.run(f"kill -0 {now.strip()}").exit_code == 0


def test_ssh_dropped_while_shaping(router: StandInRouter, hold: Hold) -> None:
    before = found_on(router)
    with hold(dead_man="10 s") as held:
        held.shaping.shape("one", PHONE, up=SLOW, down=SLOW)
        router.unplug()
        try:
            with pytest.raises(MachineError, match=r"router wifi: .*lost while shaping"):
                held.hold.check_alive()
        finally:
            router.plug_in()
        wait_until_given_back(router, before)
        held.renew()
        held.shaping.shape("one", PHONE, up=SLOW, down=SLOW)
        assert rtt_ms(router) == pytest.approx(120, rel=0.2)


def test_rebooted_in_the_middle_and_on_purpose(router: StandInRouter, hold: Hold, ssh: SshConnection) -> None:
    with hold() as held:
        held.shaping.shape("one", PHONE, up=SLOW, down=SLOW)
        held.reboot()
        assert held.shaping.state() == {}
        held.shaping.shape("one", PHONE, up=SLOW, down=SLOW)
        ssh.connect()
        with contextlib.suppress(MachineError):  # the router closes the connection first
            ssh.run("reboot")
        router.wait_for_ssh()
        with pytest.raises(MachineError, match="rebooted while it shaped: nothing is shaped any more"):
            held.hold.check_alive()
        held.shaping.unshape("one")


def test_a_killed_host_is_cleared_up_after_by_the_next_run_and_else_by_the_router(
    router: StandInRouter, lab_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    before = found_on(router)
    text = lab_file.read_text()
    for who in ("next run", "router"):
        lab_file.write_text(
            text.replace(
                "    interface: vec0\n", f"    interface: vec0\n    dead_man: {10 if who == 'router' else 600} s\n"
            )
        )
        argv = [sys.executable, "-m", "mplab", "router", "shape", str(lab_file), "one"]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as host:
            assert host.stdout is not None
            assert "wlan0" in host.stdout.readline()
            assert found_on(router) != before
            host.send_signal(signal.SIGKILL)
        if who == "next run":
            recovered = UndoJournal.recover(tmp_path / "mplab" / "undo")
            assert [(item.name, item.failure) for item in recovered] == [("router wifi: as it was found", "")]
            assert found_on(router) == before
        else:
            wait_until_given_back(router, before)

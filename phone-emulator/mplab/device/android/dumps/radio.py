"""Render the output of ``dumpsys`` for WiFi, telephony, connectivity and traffic."""

from mplab.device.android.model import SimFile
from mplab.device.android.state import State
from mplab.device.network import RMNET, WLAN, DeviceNetwork

_RADIO_TECHNOLOGY = {"NR": 20, "LTE": 14, "HSPA": 11, "UMTS": 3, "EDGE": 2, "GPRS": 1}
_NETWORK_TYPE = {"NR": 20, "LTE": 13, "HSPA": 10, "UMTS": 3, "EDGE": 2, "GPRS": 1}
_UNAVAILABLE = 2147483647


def wifi_info(state: State, network: DeviceNetwork) -> str:
    """Return the state of WiFi in the text format of Android's ``WifiInfo``."""
    wifi = state.model.wifi
    quoted = state.model.sdk >= 30
    if wifi is None or not state.radios.wifi_up:
        ssid = "<unknown ssid>"
        return (
            f"SSID: {ssid}, BSSID: <none>, MAC: 02:00:00:00:00:00, Supplicant state: DISCONNECTED, RSSI: -127, "
            "Link speed: -1Mbps, Tx Link speed: -1Mbps, Rx Link speed: -1Mbps, Frequency: -1MHz, Net ID: -1, "
            "Metered hint: false, score: 0"
        )
    ssid = f'"{wifi.ssid}"' if quoted else wifi.ssid
    address = network.address(WLAN).split("/")[0]
    newer = f"IP: /{address}, Security type: 2, " if quoted else ""
    standard = "Wi-Fi standard: 11ac, " if quoted else ""
    return (
        f"SSID: {ssid}, BSSID: {wifi.bssid}, MAC: 02:6d:70:00:00:01, {newer}Supplicant state: COMPLETED, {standard}"
        f"RSSI: {wifi.rssi_dbm}, Link speed: {wifi.link_mbps}Mbps, Tx Link speed: {wifi.link_mbps}Mbps, "
        f"Max Supported Tx Link speed: 866Mbps, Rx Link speed: {wifi.link_mbps}Mbps, "
        f"Max Supported Rx Link speed: 866Mbps, Frequency: {wifi.frequency_mhz}MHz, Net ID: 0, "
        "Metered hint: false, score: 60"
    )


def wifi(state: State, network: DeviceNetwork) -> str:
    """Return the output of ``dumpsys wifi``."""
    switched = "enabled" if state.radios.wifi else "disabled"
    up = state.radios.wifi_up
    current = "ConnectedState" if up else "DisconnectedState"
    return (
        f"Wi-Fi is {switched}\n"
        "Verbose logging is off\n"
        "Stay-awake conditions: 0\n"
        "mInIdleMode false\n"
        "mScanPending false\n"
        "WifiController:\n"
        f" curState={'EnabledState' if state.radios.wifi else 'DisabledState'}\n"
        f"mWifiInfo {wifi_info(state, network)}\n"
        f"curState={current}\n"
        f"mNetworkInfo [type: WIFI[], state: {'CONNECTED/CONNECTED' if up else 'DISCONNECTED/DISCONNECTED'}, "
        "reason: (unspecified), extra: (none), failover: false, available: true, roaming: false]\n"
    )


def wifi_status(state: State, network: DeviceNetwork) -> str:
    """Return the output of ``cmd wifi status`` (Android 11 and later)."""
    if not state.radios.wifi:
        return "Wifi is disabled\nWifi scanning is only available when wifi is enabled\n"
    text = "Wifi is enabled\nWifi scanning is only available when wifi is enabled\n"
    text += "==== Primary ClientModeManager instance ====\n"
    if not state.radios.wifi_up or state.model.wifi is None:
        return text + "Wifi is not connected\n"
    return (
        text + f'Wifi is connected to "{state.model.wifi.ssid}"\nWifiInfo: {wifi_info(state, network)}\n'
        "successfulTxPackets: 1000\nsuccessfulTxPacketsPerSecond: 0.0\nretriedTxPackets: 10\nlostTxPackets: 0\n"
        "NetworkCapabilities: [ Transports: WIFI Capabilities: "
        f"{_CAPABILITIES} LinkUpBandwidth>=60000Kbps LinkDnBandwidth>=60000Kbps SignalStrength: "
        f"{state.model.wifi.rssi_dbm}]\n"
    )


_CAPABILITIES = (
    "NOT_METERED&INTERNET&NOT_RESTRICTED&TRUSTED&NOT_VPN&VALIDATED&NOT_ROAMING&FOREGROUND&NOT_CONGESTED&NOT_SUSPENDED"
)


def telephony_registry(state: State, _network: DeviceNetwork) -> str:
    """Return the output of ``dumpsys telephony.registry``."""
    text = "last known state:\n"
    for index, sim in enumerate(state.model.sims):
        text += _phone(index, sim, state)
    return text + "local logs:\n"


def _phone(index: int, sim: SimFile, state: State) -> str:
    registered = sim.state == "LOADED" and not state.radios.airplane
    voice = "0(IN_SERVICE)" if registered else "3(POWER_OFF)" if state.radios.airplane else "1(OUT_OF_SERVICE)"
    technology = f"{_RADIO_TECHNOLOGY[sim.network]}({sim.network})" if registered else "0(Unknown)"
    operator = sim.operator if registered else "null"
    display = "NR_SA" if sim.network == "NR" else "NONE"
    network_type = _NETWORK_TYPE[sim.network] if registered else 0
    lines = [
        f"Phone Id={index}",
        "  mCallState=0",
        "  mRingingCallState=0",
        "  mForegroundCallState=0",
        "  mBackgroundCallState=0",
        "  mCallIncomingNumber=",
        f"  mServiceState={{mVoiceRegState={voice}, mDataRegState={voice}, mChannelNumber=1300, duplexMode()=1, "
        f"mCellBandwidths=[20000], mOperatorAlphaLong={operator}, mOperatorAlphaShort={operator}, "
        "isManualNetworkSelection=false(automatic), "
        f"getRilVoiceRadioTechnology={technology}, getRilDataRadioTechnology={technology}, mCssIndicator=unsupported, "
        f"mNetworkId=-1, mSystemId=-1, mIsEmergencyOnly={'false' if registered else 'true'}, "
        f"mOperatorNumeric={sim.numeric if registered else 'null'}}}",
        f"  mSignalStrength=SignalStrength:{{{_signal(sim, registered=registered)}}}",
        "  mMessageWaiting=false",
        "  mCallForwarding=false",
        f"  mDataActivity={0 if not state.radios.data_up else 4}",
        f"  mDataConnectionState={2 if state.radios.data_up else 0}",
        f"  mCellIdentity={_cell(sim) if registered else 'null'}",
        f"  mCellInfo=[{_cell_info(sim) if registered else ''}]",
    ]
    if state.model.sdk >= 30:
        info = f"network={network_type}, overrideNetwork={display}"
        lines.append(f"  mTelephonyDisplayInfo=TelephonyDisplayInfo {{{info}}}")
    return "".join(f"  {line}\n" for line in lines)


def _signal(sim: SimFile, *, registered: bool) -> str:
    none = _UNAVAILABLE
    power = sim.signal_dbm if registered else none
    level = 4 if power > -85 else 3 if power > -95 else 2 if power > -105 else 1
    level = level if registered else 0
    lte = power if sim.network != "NR" else none
    nr = power if sim.network == "NR" else none
    primary = "CellSignalStrengthNr" if sim.network == "NR" else "CellSignalStrengthLte"
    return (
        f"mCdma=CellSignalStrengthCdma: cdmaDbm={none} cdmaEcio={none} evdoDbm={none} evdoEcio={none} evdoSnr={none} "
        "level=0,"
        f"mGsm=CellSignalStrengthGsm: rssi={none} ber={none} mTa={none} mLevel=0,"
        f"mWcdma=CellSignalStrengthWcdma: ss={none} ber={none} rscp={none} ecno={none} level=0,"
        f"mTdscdma=CellSignalStrengthTdscdma: rssi={none} ber={none} rscp={none} level=0,"
        f"mLte=CellSignalStrengthLte: rssi={lte + 20 if lte != none else none} rsrp={lte} "
        f"rsrq={-10 if lte != none else none} "
        f"rssnr={none} cqi={none} ta={none} level={level if lte != none else 0} parametersUseForLevel=0,"
        f"mNr=CellSignalStrengthNr:{{ csiRsrp = {none} csiRsrq = {none} csiCqiTableIndex = {none} csiCqiReport = [] "
        f"ssRsrp = {nr} ssRsrq = {-10 if nr != none else none} ssSinr = {none} level = {level if nr != none else 0} "
        f"parametersUseForLevel = 0 timingAdvance = {none} }},primary={primary}"
    )


def _cell(sim: SimFile) -> str:
    mcc, mnc = sim.numeric[:3], sim.numeric[3:]
    if sim.network == "NR":
        return (
            f"CellIdentityNr:{{ mPci = 7 mTac = 1 mNrArfcn = 632448 mBands = [78] mMcc = {mcc} mMnc = {mnc} "
            f"mNci = {sim.cell} mAlphaLong = {sim.operator} mAlphaShort = {sim.operator} mAdditionalPlmns = {{}} }}"
        )
    return (
        f"CellIdentityLte:{{ mCi={sim.cell} mPci=7 mTac=1 mEarfcn=1300 mBands=[3] mBandwidth=20000 "
        f"mMcc={mcc} mMnc={mnc} "
        f"mAlphaLong={sim.operator} mAlphaShort={sim.operator} mAdditionalPlmns={{}} mCsgInfo=null}}"
    )


def _cell_info(sim: SimFile) -> str:
    kind = "Nr" if sim.network == "NR" else "Lte"
    return f"CellInfo{kind}:{{mRegistered=YES mTimeStamp=1234567890ns mCellConnectionStatus=1 {_cell(sim)} }}"


def connectivity(state: State, network: DeviceNetwork) -> str:
    """Return the output of ``dumpsys connectivity``."""
    agents = []
    if state.radios.wifi_up:
        agents.append((101, "WIFI", WLAN, f"SignalStrength: {state.model.wifi.rssi_dbm if state.model.wifi else -60}"))
    if state.radios.data_up:
        agents.append((102, "CELLULAR", RMNET, "Specifier: <TelephonyNetworkSpecifier [mSubId = 1]>"))
    text = "NetworkProviders for: WifiNetworkFactory, PhoneSwitcherNetworkRequestListener\n\n"
    text += f"Active default network: {agents[0][0] if agents else 'none'}\n\nCurrent Networks:\n"
    for number, transport, interface, more in agents:
        name = f"MOBILE[{state.model.sims[0].network}]" if transport == "CELLULAR" else "WIFI[]"
        capabilities = _CAPABILITIES if transport == "WIFI" else _CAPABILITIES.replace("NOT_METERED&", "")
        address, gateway = network.address(interface), network.gateway(interface)
        route = f"0.0.0.0/0 -> {gateway} {interface} mtu 0"
        text += (
            f"  NetworkAgentInfo{{network{{{number}}}  handle{{{number << 32 | 0xCAFED00D}}}  ni{{{name} CONNECTED "
            f"extra: }} created=2024-01-01T00:00:00Z Score(Policies : EVER_VALIDATED&IS_VALIDATED) "
            f"lp{{{{InterfaceName: {interface} LinkAddresses: [ {address} ] DnsAddresses: [ /{gateway} ] "
            f"Domains: null MTU: 1500 Routes: [ {route} ]}}}} "
            f"nc{{[ Transports: {transport} Capabilities: {capabilities} LinkUpBandwidth>=60000Kbps "
            f"LinkDnBandwidth>=60000Kbps {more}]}}}}\n"
        )
    return text + f"\nAirplane mode: {'on' if state.radios.airplane else 'off'}\n"


def netstats(counters: dict[str, tuple[int, int, int, int]]) -> str:
    """Return the output of ``dumpsys netstats``: the traffic of each interface."""
    text = "Active interfaces:\n"
    for interface, kind in ((WLAN, 1), (RMNET, 0)):
        if interface in counters:
            metered = str(not kind).lower()
            text += f"  iface={interface} ident=[{{type={kind}, metered={metered}, defaultNetwork=true}}]\n"
    text += "Xt stats:\n  Pending bytes: 0\n"
    for interface, numbers in sorted(counters.items()):
        names = ("rxBytes", "rxPackets", "txBytes", "txPackets")
        values = " ".join(f"{name}={number}" for name, number in zip(names, numbers, strict=True))
        text += f"  iface={interface} {values}\n"
    return text

package android

import (
	"regexp"
	"strconv"
	"strings"

	"mplab/phonelog/internal/logger/record"
)

// slotsMost is the maximum number of SIM slots; phones have up to three.
const slotsMost = 8

// firstInDB is the first API level (Android 11) with the LTE SNR in dB; earlier
// ones use tenths of dB.
const firstInDB = 30

// slotBegin matches the start of a slot's section, slotsEnd the history or list
// of listeners after the slots.
var (
	slotBegin = regexp.MustCompile(`(?m)^\s*Phone Id=(\d+)\s*$`)
	slotsEnd  = regexp.MustCompile(`(?m)^\s*(local logs|local log|registrations|mDefaultSubId|Preferences)\b.*$`)
)

// Cells parses `dumpsys telephony.registry` and returns one record per SIM
// slot. sdk is the API level (0: unknown), which determines the unit of some
// numbers.
func Cells(text string, sdk int) ([]record.Cell, error) {
	if err := Refused(text); err != nil {
		return nil, err
	}
	begins := slotBegin.FindAllStringSubmatchIndex(text, slotsMost)
	if len(begins) == 0 {
		return nil, unread("SIM slot", text)
	}
	var cells []record.Cell
	seen := make(map[int]bool)
	for i, at := range begins {
		slot, err := strconv.Atoi(text[at[2]:at[3]])
		if err != nil || slot > 9 || seen[slot] {
			continue
		}
		seen[slot] = true
		end := len(text)
		if i+1 < len(begins) {
			end = begins[i+1][0]
		}
		part := text[at[1]:end]
		if cut := slotsEnd.FindStringIndex(part); cut != nil {
			part = part[:cut[0]]
		}
		cells = append(cells, cell(slot, part, sdk))
	}
	return cells, nil
}

func cell(slot int, part string, sdk int) record.Cell {
	c := record.Cell{Slot: slot}
	state := object(part, "mServiceState=")
	readService(&c, state)
	values := fields(object(part, "mTelephonyDisplayInfo="))
	if name(values["network"]) != "" && c.Type == "" {
		c.Type = technology(values["network"])
	}
	if c.Override = name(values["overrideNetwork"]); c.Override == "" {
		c.Override = name(values["override"])
	}
	// TelephonyManager.DATA_*.
	c.DataState = map[string]string{"-1": "UNKNOWN", "0": "DISCONNECTED", "1": "CONNECTING", "2": "CONNECTED", "3": "SUSPENDED", "4": "DISCONNECTING"}[attribute(part, "mDataConnectionState=")]
	readSignal(&c, object(part, "mSignalStrength="), sdk)
	readIdentity(&c, part, state)
	return c
}

// attribute returns the rest of the line that starts with a key.
func attribute(part, key string) string {
	for line := range strings.Lines(part) {
		if rest, found := strings.CutPrefix(strings.TrimSpace(line), key); found {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

// object returns the value of a key: the rest of its line, or the text up to
// the closing brace, because some vendors break lines.
func object(part, key string) string {
	at := strings.Index(part, "\n")
	for at >= 0 && at < len(part) {
		line := strings.TrimLeft(part[at:], "\n\r \t")
		if rest, found := strings.CutPrefix(line, key); found {
			first, _, _ := strings.Cut(rest, "\n")
			if open := strings.IndexByte(first, '{'); open >= 0 && strings.Count(first, "{") > strings.Count(first, "}") {
				return first[:open] + "{" + braces(rest[open:]) + "}"
			}
			return first
		}
		next := strings.IndexByte(line, '\n')
		if next < 0 {
			return ""
		}
		at = len(part) - len(line) + next
	}
	return ""
}

var (
	voiceState   = regexp.MustCompile(`mVoiceRegState=-?\d+\((\w+)\)`)
	dataState    = regexp.MustCompile(`mDataRegState=-?\d+\((\w+)\)`)
	dataRadio    = regexp.MustCompile(`getRilDataRadioTechnology=-?\d+\(([^)]*)\)`)
	operatorName = regexp.MustCompile(`m(?:Data)?OperatorAlphaLong=([^,]*),`)
	aggregation  = regexp.MustCompile(`isUsingCarrierAggregation=\s?(true|false)`)
	registration = regexp.MustCompile(`NetworkRegistrationInfo\{`)
	roamingType  = regexp.MustCompile(`roamingType=(\w+)`)
	access       = regexp.MustCompile(`accessNetworkTechnology=(\w+)`)
	nrState      = regexp.MustCompile(`nrState=(\w+)`)
	plmn         = regexp.MustCompile(`rRplmn=(\d{5,6})\b`)
)

// readService parses ServiceState.toString().
func readService(c *record.Cell, state string) {
	c.Service, c.DataService = service(voiceState, state), service(dataState, state)
	if m := operatorName.FindStringSubmatch(state); m != nil && m[1] != "null" {
		c.OperatorName = clip(strings.TrimSpace(m[1]), 128)
	}
	if m := aggregation.FindStringSubmatch(state); m != nil {
		is := m[1] == "true"
		c.Aggregation = &is
	}
	for _, info := range registrations(state) {
		if !strings.Contains(info, "domain=PS") || !strings.Contains(info, "transportType=WWAN") {
			continue
		}
		if m := roamingType.FindStringSubmatch(info); m != nil {
			is := m[1] != "NOT_ROAMING" && m[1] != "UNKNOWN"
			c.Roaming = &is
		}
		if m := access.FindStringSubmatch(info); m != nil {
			c.Type = technology(m[1])
		}
		if m := nrState.FindStringSubmatch(info); m != nil {
			c.NRState = name(m[1])
		}
		if m := plmn.FindStringSubmatch(info); m != nil {
			c.Operator = m[1]
		}
		break
	}
	if c.Type == "" {
		if m := dataRadio.FindStringSubmatch(state); m != nil {
			c.Type = technology(m[1])
		}
	}
}

// registrations returns the NetworkRegistrationInfo entries of a service state.
func registrations(state string) []string {
	var all []string
	for _, at := range registration.FindAllStringIndex(state, 16) {
		all = append(all, braces(state[at[1]-1:]))
	}
	return all
}

func service(pattern *regexp.Regexp, state string) string {
	if m := pattern.FindStringSubmatch(state); m != nil {
		switch m[1] {
		case "IN_SERVICE", "OUT_OF_SERVICE", "EMERGENCY_ONLY", "POWER_OFF":
			return m[1]
		}
	}
	return ""
}

// technology returns the name of a radio technology; ServiceState and
// TelephonyManager have different names for two of them.
func technology(text string) string {
	switch text = name(text); text {
	case "NR_SA":
		return "NR"
	case "Unknown", "UNKNOWN":
		return ""
	case "HSPAP":
		return "HSPA+"
	}
	return text
}

// signalOf lists the parts of SignalStrength.toString(), best first. Without a
// primary part, the first one with a level is used.
var signalOf = []string{"Nr", "Lte", "Wcdma", "Tdscdma", "Gsm", "Cdma"}

var primary = regexp.MustCompile(`primary=CellSignalStrength(\w+)`)

// readSignal parses SignalStrength.toString().
func readSignal(c *record.Cell, signal string, sdk int) {
	if m := primary.FindStringSubmatch(signal); m != nil {
		takeSignal(c, m[1], signal, sdk)
		return
	}
	for _, of := range signalOf {
		if takeSignal(c, of, signal, sdk) {
			return
		}
	}
}

func takeSignal(c *record.Cell, of, signal string, sdk int) bool {
	_, rest, found := strings.Cut(signal, "m"+of+"=CellSignalStrength"+of+":")
	if !found {
		return false
	}
	if end := strings.Index(rest, "=CellSignalStrength"); end >= 0 {
		rest = rest[:end]
	}
	values := fields(rest)
	number := func(key string, least, most int) *float64 { return decimal(integer(values[key]), least, most) }
	level := values["level"]
	if level == "" {
		level = values["mLevel"] // GSM
	}
	var measured record.Cell
	switch of { // ranges from the documentation of the class
	case "Nr":
		measured.RSRP, measured.RSRQ, measured.SINR = number("ssRsrp", -156, -31), number("ssRsrq", -43, 20), number("ssSinr", -23, 40)
	case "Lte":
		measured.RSRP, measured.RSRQ, measured.RSSI = number("rsrp", -140, -43), number("rsrq", -34, 3), number("rssi", -113, -51)
		measured.SINR = lteSINR(integer(values["rssnr"]), sdk)
	case "Wcdma", "Tdscdma":
		measured.RSCP, measured.RSSI = number("rscp", -120, -24), number("ss", -113, -51)
		if measured.RSSI == nil {
			measured.RSSI = number("rssi", -113, -51)
		}
	case "Gsm":
		measured.RSSI = number("rssi", -113, -51)
	case "Cdma":
		measured.RSSI = number("cdmaDbm", -120, -1)
	default:
		return false
	}
	if measured.RSRP == nil && measured.RSSI == nil && measured.RSCP == nil {
		if n := integer(level); n == nil || *n == 0 {
			return false
		}
	}
	c.SignalOf, c.Level = strings.ToUpper(of), within(integer(level), 0, 4)
	c.RSRP, c.RSRQ, c.SINR, c.RSSI, c.RSCP = measured.RSRP, measured.RSRQ, measured.SINR, measured.RSSI, measured.RSCP
	return true
}

// lteSINR returns the LTE SNR in dB. If the API level is unknown, a value
// outside the dB range is assumed to be in tenths.
func lteSINR(n *int, sdk int) *float64 {
	if n = within(n, -200, 300); n == nil {
		return nil
	}
	db := float64(*n)
	if sdk > 0 && sdk < firstInDB || db < -20 || db > 30 {
		db /= 10
	}
	return &db
}

var identity = regexp.MustCompile(`CellIdentity(Nr|Lte|Wcdma|Tdscdma|Gsm|Cdma):\s*\{`)

// readIdentity sets the identity of the serving cell: that of packet data, or
// mCellIdentity (Android 11 and later), or the first registered cell in
// mCellInfo.
func readIdentity(c *record.Cell, part, state string) {
	for _, info := range registrations(state) {
		if strings.Contains(info, "domain=PS") && strings.Contains(info, "transportType=WWAN") && takeIdentity(c, info) {
			return
		}
	}
	if takeIdentity(c, object(part, "mCellIdentity=")) {
		return
	}
	info := object(part, "mCellInfo=")
	if at := strings.Index(info, "mRegistered=YES"); at >= 0 {
		takeIdentity(c, info[at:])
	}
}

func takeIdentity(c *record.Cell, text string) bool {
	at := identity.FindStringSubmatchIndex(text)
	if at == nil {
		return false
	}
	values := fields(braces(text[at[1]-1:]))
	pick := func(keys ...string) string {
		for _, key := range keys {
			if value, there := values[key]; there {
				return value
			}
		}
		return ""
	}
	if id, err := strconv.ParseInt(pick("mNci", "mCi", "mCid"), 10, 64); err == nil && id >= 0 && id != unavailable && id != unavailableLong {
		c.CellID = &id
	}
	c.Area = within(integer(pick("mTac", "mLac")), 0, 1<<24)
	c.PCI = within(integer(pick("mPci", "mPsc")), 0, 1<<16)
	c.ARFCN = within(integer(pick("mNrArfcn", "mEarfcn", "mUarfcn", "mArfcn")), 0, 1<<24)
	for band := range strings.SplitSeq(strings.Trim(pick("mBands"), "[]"), ",") {
		if n := within(integer(band), 1, 10000); n != nil && len(c.Bands) < 32 {
			c.Bands = append(c.Bands, *n)
		}
	}
	if mcc, mnc := pick("mMcc"), pick("mMnc"); c.Operator == "" && digits.MatchString(mcc+" "+mnc) {
		c.Operator = mcc + mnc
	}
	return true
}

var digits = regexp.MustCompile(`^\d{3} \d{2,3}$`)

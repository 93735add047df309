package config

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"mplab/control"
	"mplab/internal/secretfile"
	"mplab/internal/strictjson"
)

// Sources that a logger can record.
const (
	RecordNetwork  = "network" // interfaces, addresses, default routes
	RecordWiFi     = "wifi"
	RecordCell     = "cell"    // technology, operator, signal
	RecordCellID   = "cell-id" // identity of the cell
	RecordBattery  = "battery"
	RecordLocation = "location"
)

// Conditions for uploads.
const (
	WhenWiFi     = "wifi"
	WhenCharging = "charging"
)

var (
	recordable     = []string{RecordNetwork, RecordWiFi, RecordCell, RecordCellID, RecordBattery, RecordLocation}
	recordedBefore = []string{RecordNetwork, RecordWiFi, RecordCell, RecordCellID, RecordBattery} // default
)

// Logger is the configuration of the logger on the phone.
type Logger struct {
	Device          string        `json:"device"` // name at the collector
	Store           string        `json:"store"`  // directory of its files
	Record          []string      `json:"record"` // nil: everything except location
	HashSSIDKeyFile string        `json:"hash_ssid_key_file"`
	Periods         LoggerPeriods `json:"periods"`
	HeartbeatS      float64       `json:"heartbeat_s"`
	Steps           LoggerSteps   `json:"steps"`
	Interfaces      []string      `json:"interfaces"` // patterns; nil: all except loopback
	Files           LoggerFiles   `json:"files"`
	Upload          *LoggerUpload `json:"upload"` // nil: none
	MyIP            *LoggerMyIP   `json:"myip"`   // nil: disabled
	Control         string        `json:"control"`

	HashKey []byte `json:"-"` // nil: names are not hashed
}

// LoggerPeriods are the periods at which sources are read.
type LoggerPeriods struct {
	NetworkS  float64 `json:"network_s"` // in addition to kernel notifications
	WiFiS     float64 `json:"wifi_s"`
	CellS     float64 `json:"cell_s"`
	BatteryS  float64 `json:"battery_s"`
	LocationS float64 `json:"location_s"`
}

// LoggerSteps are the minimum changes of values that cause a record.
type LoggerSteps struct {
	SignalDB     float64 `json:"signal_db"`
	TemperatureC float64 `json:"temperature_c"`
	LocationM    float64 `json:"location_m"`
}

// LoggerFiles bound the files.
type LoggerFiles struct {
	Bytes      int64   `json:"bytes"` // of one file, before compression
	AgeS       float64 `json:"age_s"` // of one file
	TotalBytes int64   `json:"total_bytes"`
	SyncS      float64 `json:"sync_s"` // maximum loss when the phone's power fails
}

// LoggerUpload configures the destination and the conditions of uploads.
type LoggerUpload struct {
	URL            string             `json:"url"`
	Connect        strictjson.Address `json:"connect"` // replaces the resolved address of the URL's host
	TokenFile      string             `json:"token_file"`
	CAFile         string             `json:"ca_file"`         // the only trusted authorities; "": the system's
	When           *[]string          `json:"when"`            // nil: on WiFi and charging; empty: always
	BatteryPercent float64            `json:"battery_percent"` // minimum level
	WiFiInterfaces []string           `json:"wifi_interfaces"` // patterns
	EveryS         float64            `json:"every_s"`         // period of checking the conditions
	TimeoutS       float64            `json:"timeout_s"`       // per file
	BackoffS       float64            `json:"backoff_s"`       // after the first failure; doubles each time
	BackoffMostS   float64            `json:"backoff_most_s"`

	Token string `json:"-"`
}

// LoggerMyIP configures how often the collector is asked for the phone's
// address on each interface.
type LoggerMyIP struct {
	EveryS float64 `json:"every_s"`
}

// LoadLogger reads and checks the configuration of a logger, including its
// secrets.
func LoadLogger(file string) (Logger, error) {
	var c Logger
	if err := strictjson.Load(file, &c); err != nil {
		return Logger{}, err
	}
	err := c.check()
	if err == nil && c.HashSSIDKeyFile != "" {
		if c.HashKey, err = secretfile.Read(c.HashSSIDKeyFile); err != nil {
			err = fmt.Errorf("hash_ssid_key_file: %w", err)
		}
	}
	if err == nil && c.Upload != nil {
		var token []byte
		if token, err = secretfile.Read(c.Upload.TokenFile); err != nil {
			err = fmt.Errorf("upload.token_file: %w", err)
		}
		if c.Upload.Token = string(token); err == nil && !tokenForm.MatchString(c.Upload.Token) {
			err = fmt.Errorf("upload.token_file: %s: %s", c.Upload.TokenFile, tokenRule)
		}
	}
	if err != nil {
		return Logger{}, fmt.Errorf("%s: %w", file, err)
	}
	return c, nil
}

var (
	// DeviceForm is the form of device names.
	DeviceForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)
	// tokenForm is the form of a token in a header (RFC 6750 §2.1).
	tokenForm = regexp.MustCompile(`^[A-Za-z0-9._~+/-]{16,512}=*$`)
)

const (
	deviceRule = "a name has up to 64 of a-z, 0-9, '.', '_' and '-', and begins with a letter or a digit"
	tokenRule  = "a token has 16 to 512 of A-Z, a-z, 0-9 and ._~+/-, then any number of =, drawn at random"
)

// Records reports whether a source is recorded.
func (c Logger) Records(what string) bool { return slices.Contains(c.Record, what) }

// Needs reports whether uploads require a condition (WhenWiFi, WhenCharging).
func (u LoggerUpload) Needs(what string) bool { return slices.Contains(*u.When, what) }

func (c *Logger) check() error {
	switch {
	case !DeviceForm.MatchString(c.Device):
		return fmt.Errorf("device: %q is no name; %s", c.Device, deviceRule)
	case c.Store == "":
		return errors.New("store: missing; give the directory for the logger's files")
	}
	if c.Control != "" {
		if err := control.CheckPath(c.Control); err != nil {
			return fmt.Errorf("control: %w", err)
		}
	}
	if c.Record == nil {
		c.Record = slices.Clone(recordedBefore)
	}
	if err := each("record", c.Record, recordable); err != nil {
		return err
	}
	if c.Records(RecordCellID) && !c.Records(RecordCell) {
		return errors.New(`record: "cell-id" is a part of "cell"; give both`)
	}
	if err := patterns("interfaces", c.Interfaces); err != nil {
		return err
	}
	err := numbers([]number{
		{"periods.network_s", &c.Periods.NetworkS, 60, 0.1, 86400},
		{"periods.wifi_s", &c.Periods.WiFiS, 5, 0.1, 86400},
		{"periods.cell_s", &c.Periods.CellS, 10, 0.1, 86400},
		{"periods.battery_s", &c.Periods.BatteryS, 60, 0.1, 86400},
		{"periods.location_s", &c.Periods.LocationS, 30, 0.1, 86400},
		{"heartbeat_s", &c.HeartbeatS, 600, 1, 86400},
		{"steps.signal_db", &c.Steps.SignalDB, 2, 0, 100},
		{"steps.temperature_c", &c.Steps.TemperatureC, 1, 0, 100},
		{"steps.location_m", &c.Steps.LocationM, 5, 0, 1e6},
		{"files.age_s", &c.Files.AgeS, 3600, 1, 7 * 86400},
		{"files.sync_s", &c.Files.SyncS, 10, 0.1, 3600},
	})
	if err != nil {
		return err
	}
	c.Files.Bytes = cmp.Or(c.Files.Bytes, 1<<20)
	c.Files.TotalBytes = cmp.Or(c.Files.TotalBytes, 100<<20)
	switch {
	case c.Files.Bytes < 4096 || c.Files.Bytes > 4<<20:
		return fmt.Errorf("files.bytes: %d is not within 4096 and 4194304", c.Files.Bytes)
	case c.Files.TotalBytes < 4*c.Files.Bytes:
		return fmt.Errorf("files.total_bytes: %d is less than four files of %d", c.Files.TotalBytes, c.Files.Bytes)
	}
	if c.Upload != nil {
		if err := c.Upload.check(); err != nil {
			return err
		}
	}
	if c.MyIP != nil {
		if c.Upload == nil {
			return errors.New("myip: the collector answers it; give upload, too")
		}
		return numbers([]number{{"myip.every_s", &c.MyIP.EveryS, 300, 1, 86400}})
	}
	return nil
}

func (u *LoggerUpload) check() error {
	at, err := url.Parse(u.URL)
	switch {
	case err != nil || at.Host == "" || at.RawQuery != "" || at.Fragment != "" || at.User != nil || strings.Trim(at.Path, "/") != "":
		return fmt.Errorf("upload.url: %q is not https://HOST:PORT", u.URL)
	case at.Scheme != "https" && (at.Scheme != "http" || !loopback(at.Hostname())):
		return fmt.Errorf("upload.url: %q is not https; plain http is for a collector on the loopback interface only", u.URL)
	case u.TokenFile == "":
		return errors.New("upload.token_file: missing; give the file with the device's token")
	}
	u.URL = strings.TrimSuffix(u.URL, "/")
	if u.When == nil {
		u.When = &[]string{WhenWiFi, WhenCharging}
	}
	if err := each("upload.when", *u.When, []string{WhenWiFi, WhenCharging}); err != nil {
		return err
	}
	if u.WiFiInterfaces == nil {
		u.WiFiInterfaces = []string{"wlan*"}
	}
	if err := patterns("upload.wifi_interfaces", u.WiFiInterfaces); err != nil {
		return err
	}
	if u.BatteryPercent < 0 || u.BatteryPercent > 100 {
		return fmt.Errorf("upload.battery_percent: %s is not within 0 and 100", plain(u.BatteryPercent))
	}
	err = numbers([]number{
		{"upload.every_s", &u.EveryS, 60, 0.05, 86400},
		{"upload.timeout_s", &u.TimeoutS, 60, 0.1, 3600},
		{"upload.backoff_s", &u.BackoffS, 5, 0.01, 3600},
		{"upload.backoff_most_s", &u.BackoffMostS, 3600, 0.01, 86400},
	})
	if err == nil && u.BackoffMostS < u.BackoffS {
		err = fmt.Errorf("upload.backoff_most_s: %s is less than backoff_s", plain(u.BackoffMostS))
	}
	return err
}

// number is a setting for which 0 means the default.
type number struct {
	key                    string
	value                  *float64
	otherwise, least, most float64
}

func numbers(all []number) error {
	for _, n := range all {
		if *n.value == 0 {
			*n.value = n.otherwise
		}
		if !(*n.value >= n.least && *n.value <= n.most) {
			return fmt.Errorf("%s: %s is not within %s and %s", n.key, plain(*n.value), plain(n.least), plain(n.most))
		}
	}
	return nil
}

// each returns an error if a list has a value that is not allowed or a
// duplicate.
func each(key string, list, allowed []string) error {
	for i, item := range list {
		switch {
		case !slices.Contains(allowed, item):
			return fmt.Errorf("%s: %q is not known; known are %s", key, item, strings.Join(allowed, ", "))
		case slices.Contains(list[:i], item):
			return fmt.Errorf("%s: %q is there twice", key, item)
		}
	}
	return nil
}

func patterns(key string, list []string) error {
	for _, pattern := range list {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			return fmt.Errorf("%s: %q is no pattern of interface names", key, pattern)
		}
	}
	return nil
}

func plain(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// Duration converts a setting in seconds.
func Duration(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

package config

import (
	"errors"
	"fmt"
	"time"

	"mplab/control"
)

// StatusEvery returns the interval at which the status of sessions with traffic is
// logged; 0: never.
func (c Agent) StatusEvery() time.Duration { return seconds(c.StatusEveryS) }

// StatusEvery returns the interval at which the status of sessions with traffic is
// logged; 0: never.
func (c Proxy) StatusEvery() time.Duration { return seconds(c.StatusEveryS) }

// checkStatus checks the settings of the control socket and of the status in the log.
func checkStatus(path, log string, everyS float64, sessions bool) error {
	if path != "" {
		if err := control.CheckPath(path); err != nil {
			return fmt.Errorf("control: %w", err)
		}
	}
	switch {
	case everyS == 0:
		return nil
	case everyS < 0.05 || everyS > 86400:
		return fmt.Errorf("status_every_s: %s is not within 0.05 and 86400", plain(everyS))
	case log == "":
		return errors.New("status_every_s: the status is written to the log; give log, too")
	case !sessions:
		return errors.New(`status_every_s: only sessions have a status in the log; they need the transport "mpflex"`)
	}
	return nil
}

package conditions

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"mplab/mpflex/policy"
)

// Battery reads the battery level from the kernel's power supplies. On a machine
// without a battery it is unknown.
type Battery struct {
	Root string // "": /sys/class/power_supply
}

// Fill sets the battery level: the mean over all batteries.
func (b Battery) Fill(c *policy.Conditions) error {
	root := b.Root
	if root == "" {
		root = "/sys/class/power_supply"
	}
	entries, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	sum, batteries := 0.0, 0
	for _, entry := range entries {
		supply := filepath.Join(root, entry.Name())
		if !isBattery(supply) {
			continue
		}
		level, err := readLevel(filepath.Join(supply, "capacity"))
		if errors.Is(err, fs.ErrNotExist) { // a battery without a level
			continue
		}
		if err != nil {
			return err
		}
		sum, batteries = sum+level, batteries+1
	}
	if batteries > 0 {
		c.Battery = policy.Known(sum / float64(batteries))
	}
	return nil
}

// isBattery reports whether a power supply is a present battery of the phone, not that
// of a device such as a mouse.
func isBattery(supply string) bool {
	attribute := func(name string) string {
		text, err := os.ReadFile(filepath.Join(supply, name))
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(text))
	}
	return attribute("type") == "Battery" && attribute("scope") != "Device" && attribute("present") != "0"
}

// BatteryFile reads the battery level, in percent, from a file. It is for machines
// without a battery.
type BatteryFile struct{ Path string }

// Fill sets the battery level. Without the file it stays unknown.
func (b BatteryFile) Fill(c *policy.Conditions) error {
	level, err := readLevel(b.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		c.Battery = policy.Known(level)
	}
	return err
}

// readLevel reads a percentage with or without "%".
func readLevel(path string) (float64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	number := strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(string(text)), "%"))
	level, err := strconv.ParseFloat(number, 64)
	if err != nil || !(level >= 0 && level <= 100) {
		return 0, fmt.Errorf("%s: found %.40q, a level within 0 and 100 is needed", path, strings.TrimSpace(string(text)))
	}
	return level, nil
}

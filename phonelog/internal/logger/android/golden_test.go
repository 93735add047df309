package android

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"mplab/phonelog/internal/collector/lines"
	"mplab/phonelog/internal/logger/record"
)

var update = flag.Bool("update", false, "write the golden records again")

// TestGolden compares with the expected records of each text, which are next to it, one
// per line. The texts have the form of Android's source in each release and of known
// vendors. The number in their names is the release.
func TestGolden(t *testing.T) {
	texts, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(texts) < 20 {
		t.Fatalf("%d texts, %v", len(texts), err)
	}
	checker := lines.New(0)
	for _, path := range texts {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			records, err := read(filepath.Base(path), string(data))
			if err != nil {
				t.Fatal(err)
			}
			got := encode(t, records)
			if bad := checker.Check([]byte(got)); len(records) > 0 && bad != nil {
				t.Errorf("against the schema: %v", bad)
			}
			golden := strings.TrimSuffix(path, ".txt") + ".jsonl"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// read parses a text by the kind in its name.
func read(name, text string) (records []record.State, err error) {
	kind, rest, _ := strings.Cut(name, "-")
	release, err := strconv.Atoi(rest[:2])
	if err != nil {
		return nil, err
	}
	switch kind {
	case "wifi":
		w, err := WiFi(text)
		w.Source = "test"
		return []record.State{&w}, err
	case "battery":
		b, err := Battery(text)
		b.Source = "test"
		return []record.State{&b}, err
	case "cell":
		cells, err := Cells(text, release+19)
		for i := range cells {
			records = append(records, &cells[i])
		}
		return records, err
	case "location":
		locations, err := Locations(text)
		for i := range locations {
			records = append(records, &locations[i])
		}
		return records, err
	}
	return nil, errors.New("a text of an unknown kind")
}

func encode(t testing.TB, records []record.State) string {
	var all strings.Builder
	for i, r := range records {
		line, err := record.Encode(r, record.Stamp{Wall: time.Unix(0, 0)}, "0000000000000000", uint64(i+1), record.First)
		if err != nil {
			t.Fatal(err)
		}
		if !json.Valid(line) {
			t.Fatalf("%s", line)
		}
		all.Write(line)
	}
	return all.String()
}

func TestWhatIsNoAnswer(t *testing.T) {
	for text, want := range map[string]string{
		"Permission Denial: can't dump telephony.registry from pid=1, uid=10077": "permission denied",
		"java.lang.SecurityException: Uid 10077 does not have access to wifi":    "permission denied",
		"Can't find service: telephony.registry\n":                               "no such service",
		"cmd: Can't find service: wifi\n":                                        "no such service",
		" \n":                                                                    "printed nothing",
		"Hello, world\n":                                                         "was found",
	} {
		_, wifi := WiFi(text)
		_, battery := Battery(text)
		_, cells := Cells(text, 0)
		_, locations := Locations(text)
		for name, err := range map[string]error{"wifi": wifi, "battery": battery, "cells": cells, "locations": locations} {
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %q: %v, want %q", name, text, err, want)
			}
		}
	}
}

// TestUnitsOfSNR checks that the LTE SNR is in tenths of dB before Android 11.
func TestUnitsOfSNR(t *testing.T) {
	text := "\n  Phone Id=0\n    mSignalStrength=SignalStrength:{mLte=CellSignalStrengthLte: rsrp=-90 rssnr=%,primary=CellSignalStrengthLte}\n"
	for _, c := range []struct {
		rssnr string
		sdk   int
		want  float64
	}{{"94", 29, 9.4}, {"9", 29, 0.9}, {"9", 30, 9}, {"9", 0, 9}, {"94", 0, 9.4}, {"-150", 0, -15}} {
		cells, err := Cells(strings.Replace(text, "%", c.rssnr, 1), c.sdk)
		if err != nil || cells[0].SINR == nil || *cells[0].SINR != c.want {
			t.Errorf("%+v: %+v, %v", c, cells, err)
		}
	}
}

package rig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"mplab/bench/mpflex/links"
	"mplab/control"
	"mplab/linkem/model"
)

// wan is the emulated link between proxy and origin.
const wan = "wan"

// emulatorPatience is the maximum wait for an answer of the emulator.
const emulatorPatience = 5 * time.Second

// linkemConfig returns a configuration whose links pass every packet.
func linkemConfig(seed uint64) []byte {
	link := func(name, a, b string) map[string]any {
		return map[string]any{"name": name, "a": a, "b": b, "up": struct{}{}, "down": struct{}{}}
	}
	data, _ := json.Marshal(map[string]any{"seed": seed, "links": []any{ // can always be encoded
		link(WiFi, "wlan-a", "wlan-b"), link(LTE, "rmnet-a", "rmnet-b"), link(wan, "wan-a", "wan-b"),
	}})
	return data
}

// emulator is the control connection to linkem.
type emulator struct{ client *control.Client }

func dialEmulator(socket string) (*emulator, error) {
	ctx, cancel := context.WithTimeout(context.Background(), emulatorPatience)
	defer cancel()
	client, err := control.Dial(ctx, socket)
	if err != nil {
		return nil, err
	}
	return &emulator{client}, nil
}

func (e *emulator) close() error { return e.client.Close() }

// ask sends a request and reads the answer into a value.
func (e *emulator) ask(request, answer any) error {
	ctx, cancel := context.WithTimeout(context.Background(), emulatorPatience)
	defer cancel()
	if err := e.client.Ask(ctx, request, answer); err != nil {
		return fmt.Errorf("linkem: %w", err)
	}
	return nil
}

// apply sets the conditions of all links.
func (e *emulator) apply(p links.Profile) error {
	one := func(name string, up, down model.Params) error {
		return e.ask(map[string]any{"op": "apply", "link": name, "up": up, "down": down}, &struct{}{})
	}
	radio := func(l links.Link, kbps float64) model.Params {
		return model.Params{
			RateKbps: kbps, DelayMs: l.RTTMs / 2, LossPercent: l.LossPercent,
			Queue: model.Queue{Bytes: links.QueueBytes},
		}
	}
	server := model.Params{DelayMs: links.ServerRTTMs / 2}
	return errors.Join(
		one(WiFi, radio(p.WiFi, p.WiFi.UpKbps), radio(p.WiFi, p.WiFi.DownKbps)),
		one(LTE, radio(p.LTE, p.LTE.UpKbps), radio(p.LTE, p.LTE.DownKbps)),
		one(wan, server, server),
	)
}

// directions are the counters of one link.
type directions struct{ Up, Down model.Counters }

func (e *emulator) counters() (map[string]directions, error) {
	var answer struct{ Links map[string]directions }
	err := e.ask(map[string]string{"op": "counters"}, &answer)
	return answer.Links, err
}

// faults returns an error for each fault that invalidates measurements on the links.
func (e *emulator) faults() error {
	all, err := e.counters()
	if err != nil {
		return err
	}
	var errs []error
	for name, link := range all {
		for direction, c := range map[string]model.Counters{"up": link.Up, "down": link.Down} {
			if c.OversizeFrames+c.KernelDropped+c.DroppedMemory > 0 {
				errs = append(errs, fmt.Errorf("link %s, %s: %d frames larger than the MTU, %d lost by the kernel, %d for want of memory",
					name, direction, c.OversizeFrames, c.KernelDropped, c.DroppedMemory))
			}
		}
	}
	return errors.Join(errs...)
}

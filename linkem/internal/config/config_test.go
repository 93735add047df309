package config

import (
	"strings"
	"testing"

	"mplab/linkem/model"
)

func TestConfigIsRead(t *testing.T) {
	config, err := Parse([]byte(`{"seed": 18446744073709551615, "links": [{"name": "wlan0", "a": "wlan-phone", "b": "wlan-router",
		"up": {"rate_kbps": 2020, "delay_ms": 25, "jitter_ms": 0, "loss_percent": 0.5},
		"down": {"rate_kbps": 7040.5, "queue": {"packets": 100}}},
		{"name": "wan", "a": "wan-proxy", "b": "wan-origin", "up": {}, "down": {}, "delay_by_prefix": {"10.65.0.2/32": 2.0}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if config.Seed != 1<<64-1 || len(config.Links) != 2 {
		t.Errorf("%+v", config)
	}
	link := config.Links[0]
	if want := (model.Params{RateKbps: 2020, DelayMs: 25, LossPercent: 0.5, Queue: model.Queue{Bytes: 150_000}}); link.Up != want {
		t.Errorf("up %+v, want %+v", link.Up, want)
	}
	if want := (model.Params{RateKbps: 7040.5, Queue: model.Queue{Packets: 100}}); link.Down != want {
		t.Errorf("down %+v, want %+v", link.Down, want)
	}
	if config.Links[1].Up != (model.Params{}) || len(config.Links[1].DelayByPrefix) != 1 {
		t.Errorf("%+v", config.Links[1])
	}
}

func TestBadConfigIsRefused(t *testing.T) {
	up := func(text string) string {
		return `{"links":[{"name":"w","a":"x","b":"y","up":` + text + `,"down":{}}]}`
	}
	for _, c := range []struct{ config, message string }{
		{`{`, "line 1, column 1: not valid JSON"},
		{"{\n\"links\": [}", "line 2, column 11: not valid JSON"},
		{`[]`, "must be an object"},
		{`{}`, "links: missing"},
		{`{"links":[]}`, "links: must have at least one link"},
		{`{"links":{}}`, "links: must be a list"},
		{`{"links":[{"name":"w"}]}`, "links[0].a: missing"},
		{`{"seed":-1,"links":[]}`, "seed: must be a whole number from 0 to 2^64-1, found -1"},
		{`{"sead":1,"links":[]}`, "sead: unknown key; allowed: links, seed"},
		{up(`{"rate":1}`), "links[0].up.rate: unknown key; allowed: delay_ms, duplicate_percent, jitter_distribution, jitter_ms, loss_model, loss_percent, middlebox, queue, rate_kbps, reorder_percent, trace"},
		{up(`{"Rate_kbps":1}`), "links[0].up.Rate_kbps: unknown key"},
		{up(`{"rate_kbps":1,"rate_kbps":2}`), "links[0].up.rate_kbps: given twice"},
		{up(`{"rate_kbps":-1}`), "links[0].up.rate_kbps: must be from 0 to 500000, found -1"},
		{up(`{"rate_kbps":500001}`), "links[0].up.rate_kbps: must be from 0 to 500000, found 500001"},
		{up(`{"rate_kbps":0.5}`), "links[0].up.rate_kbps: must be 0 (unlimited) or at least 1, found 0.5"},
		{up(`{"rate_kbps":"1"}`), `links[0].up.rate_kbps: must be a number, found "1"`},
		{up(`{"rate_kbps":null}`), "links[0].up.rate_kbps: must be a number, found null"},
		{up(`{"rate_kbps":1e999}`), "links[0].up.rate_kbps: must be a number, found 1e999"},
		{up(`{"delay_ms":NaN}`), "not valid JSON"},
		{up(`{"delay_ms":-0.1}`), "links[0].up.delay_ms: must be from 0 to 60000, found -0.1"},
		{up(`{"jitter_ms":-3}`), "links[0].up.jitter_ms: must be from 0"},
		{up(`{"loss_percent":100.5}`), "links[0].up.loss_percent: must be from 0 to 100, found 100.5"},
		{up(`{"jitter_distribution":"gauss"}`), `links[0].up.jitter_distribution: must be one of normal, pareto, paretonormal, uniform, found "gauss"`},
		{up(`{"jitter_distribution":1}`), "links[0].up.jitter_distribution: must be one of"},
		{up(`{"loss_model":{"p_percent":1}}`), "links[0].up.loss_model.r_percent: missing"},
		{up(`{"loss_model":{"p_percent":1,"r_percent":101}}`), "links[0].up.loss_model.r_percent: must be from 0 to 100, found 101"},
		{up(`{"loss_model":{"p_percent":1,"r_percent":0}}`), "links[0].up.loss_model.r_percent: must be above 0, or the bad state would never end"},
		{up(`{"loss_model":{"p_percent":1,"r_percent":5},"loss_percent":1}`), "links[0].up: give loss_percent or loss_model, not both"},
		{up(`{"loss_model":null}`), "links[0].up.loss_model: must be an object"},
		{up(`{"duplicate_percent":-1}`), "links[0].up.duplicate_percent: must be from 0 to 100, found -1"},
		{up(`{"reorder_percent":5}`), "links[0].up.reorder_percent: needs a delay_ms"},
		{up(`{"queue":{"bytes":100}}`), "links[0].up.queue.bytes: must be from 1500"},
		{up(`{"queue":{"packets":0}}`), "links[0].up.queue.packets: must be from 1"},
		{up(`{"queue":{"packets":1.5}}`), "links[0].up.queue.packets: must be a whole number, found 1.5"},
		{up(`{"queue":{"packets":5,"bytes":15000}}`), "links[0].up.queue: give bytes or packets, not both"},
		{up(`{"queue":{"discipline":"cake"}}`), `links[0].up.queue.discipline: must be one of drop-tail, codel, fq_codel, found "cake"`},
		{up(`{"queue":{"target_ms":5}}`), "links[0].up.queue: target_ms and interval_ms are those of codel and fq_codel; the discipline is drop-tail"},
		{up(`{"queue":{"discipline":"codel","target_ms":0}}`), "links[0].up.queue.target_ms: must be from 0.001 to 60000, found 0"},
		{up(`{"queue":{"discipline":"codel","target_ms":200}}`), "links[0].up.queue: target_ms (200) must not be above interval_ms (100)"},
		{`{"links":[{"name":"w","a":"x","b":"x","up":{},"down":{}}]}`, `links[0].b: interface "x" is already links[0].a`},
		{`{"links":[{"name":"w","a":"x","b":"y","up":{},"down":{}},{"name":"w","a":"u","b":"v","up":{},"down":{}}]}`, `links[1].name: "w" is already the name of links[0]`},
		{`{"links":[{"name":"w w","a":"x","b":"y","up":{},"down":{}}]}`, "links[0].name: must be 1 to 40 letters"},
		{`{"links":[{"name":"w","a":"sixteen-letters-","b":"y","up":{},"down":{}}]}`, "links[0].a: an interface name has at most 15 bytes"},
		{`{"links":[{"name":"w","a":"x","b":"y","up":{},"down":{},"delay_by_prefix":{"10.0.0.1":1}}]}`, `links[0].delay_by_prefix["10.0.0.1"]: must be an address prefix`},
		{`{"links":[{"name":"w","a":"x","b":"y","up":{},"down":{},"delay_by_prefix":{"10.0.0.1/8":1}}]}`, "did you mean 10.0.0.0/8?"},
		{`{"links":[{"name":"w","a":"x","b":"y","up":{},"down":{},"delay_by_prefix":{"10.0.0.0/8":-1}}]}`, "must be from 0 to 60000, found -1"},
		{`{"links":[{"name":"w","a":"x","b":"y","up":{},"down":{},"delay_by_prefix":{"10.0.0.0/8":1,"10.0.0.0/8":2}}]}`, `links[0].delay_by_prefix["10.0.0.0/8"]: given twice`},
		{`{"links":[{"name":"w","a":"x","b":"y","up":{},"down":{},"delay_by_prefix":[]}]}`, `links[0].delay_by_prefix: must be an object`},
	} {
		if _, err := Parse([]byte(c.config)); err == nil || !strings.Contains(err.Error(), c.message) {
			t.Errorf("%s:\n got  %v\n want %s", c.config, err, c.message)
		}
	}
}

func TestRequests(t *testing.T) {
	if r, err := ParseRequest([]byte(`{"op":"apply","link":"w","up":{"rate_kbps":8},"down":{}}`)); err != nil || r.Seed != nil || r.Up.Queue.Bytes != model.DefaultQueueBytes {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := ParseRequest([]byte(`{"op":"apply","link":"w","up":{},"down":{},"seed":7}`)); err != nil || r.Seed == nil || *r.Seed != 7 {
		t.Errorf("%+v, %v", r, err)
	}
	for queue, want := range map[string]model.Queue{
		`{"discipline":"codel"}`:                                {Packets: 1000, Discipline: model.Codel, TargetMs: 5, IntervalMs: 100},
		`{"discipline":"fq_codel","bytes":9000,"target_ms":20}`: {Bytes: 9000, Discipline: model.FqCodel, TargetMs: 20, IntervalMs: 100},
		`{"discipline":"drop-tail"}`:                            {Bytes: model.DefaultQueueBytes, Discipline: model.DropTail},
	} {
		r, err := ParseRequest([]byte(`{"op":"apply","link":"w","up":{"rate_kbps":8,"queue":` + queue + `},"down":{}}`))
		if err != nil || r.Up.Queue != want {
			t.Errorf("%s: %+v, %v, want %+v", queue, r.Up.Queue, err, want)
		}
	}
	for request, message := range map[string]string{
		`nonsense`:                          "not valid JSON",
		`{}`:                                "op: missing",
		`{"op":"stop"}`:                     `op: unknown operation "stop"; there are apply, counters, state`,
		`{"op":7}`:                          "op: must be a string",
		`{"op":"state","link":"w"}`:         "link: unknown key; allowed: op",
		`{"op":"apply","link":"w","up":{}}`: "down: missing",
		`{"op":"apply","up":{},"down":{}}`:  "link: missing",
		`{"op":"apply","link":"w","up":{},"down":{},"continue":1}`:             "continue: must be true or false, found 1",
		`{"op":"apply","link":"w","up":{},"down":{},"continue":true,"seed":1}`: "seed: not allowed with continue",
		`{"op":"apply","link":"w","down":"x"}`:                                 `down: must be an object {…}, found "x"`,
	} {
		if _, err := ParseRequest([]byte(request)); err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%s:\n got  %v\n want %s", request, err, message)
		}
	}
}

func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"op":"apply","link":"w","up":{"queue":{"bytes":15000}},"down":{},"seed":7}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		if r, err := ParseRequest(line); err == nil && (r.Up.LossPercent < 0 || r.Up.LossPercent > 100) {
			t.Errorf("%+v", r)
		}
	})
}

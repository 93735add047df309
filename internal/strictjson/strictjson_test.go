package strictjson

import (
	"os"
	"path/filepath"
	"testing"
)

type inner struct {
	On *bool `json:"on"`
}

type settings struct {
	At    Address           `json:"at"`
	Count int               `json:"count"`
	Inner *inner            `json:"inner"`
	List  []inner           `json:"list"`
	Named map[string]*inner `json:"named"`
	Large uint64            `json:"large"`
	Own   string            `json:"-"`
}

func TestDecode(t *testing.T) {
	var c settings
	err := Decode([]byte(`{"at": "[::ffff:192.0.2.1]:80", "count": 3, "inner": {"on": false}, "list": [{}, {"on": true}],
		"named": {"a.b": {"on": true}, "c": null}, "large": 18446744073709551615}`), &c)
	if err != nil || len(c.Named) != 2 || !*c.Named["a.b"].On || c.Named["c"] != nil || c.Large != 1<<64-1 || c.At.String() != "192.0.2.1:80" || c.Count != 3 || *c.Inner.On || !*c.List[1].On {
		t.Errorf("%+v, %v", c, err)
	}
	if err := Decode([]byte(`{"at": null, "inner": null, "named": null}`), &c); err != nil || c.Inner != nil || c.Named != nil {
		t.Errorf("%+v, %v", c, err)
	}
	if err := Decode([]byte(`{"list": []}`), &c); err != nil || c.List == nil || len(c.List) != 0 {
		t.Errorf("an empty list is not a missing one: %+v, %v", c, err)
	}
}

func TestRefused(t *testing.T) {
	for text, want := range map[string]string{
		`[]`:                             `must be an object {…}, found []`,
		"{\n\"count\": 1,,}":             `line 2, column 12: not valid JSON: invalid character ',' looking for beginning of object key string`,
		`{} {}`:                          `line 1, column 4: not valid JSON: invalid character '{' after top-level value`,
		`{"counts": 1}`:                  `counts: unknown key; allowed: at, count, inner, large, list, named`,
		`{"Own": "x"}`:                   `Own: unknown key; allowed: at, count, inner, large, list, named`,
		`{"count": 1, "count": 2}`:       `count: given twice; remove one`,
		`{"list": [{}, {"on": 1}]}`:      `list[1].on: must be true or false, found 1`,
		`{"list": [{}, {"off": 1}]}`:     `list[1].off: unknown key; allowed: on`,
		`{"inner": {"on": 1, "off": 2}}`: `inner.on: must be true or false, found 1`,
		`{"inner": {"off": 2}}`:          `inner.off: unknown key; allowed: on`,
		`{"inner": null, "list": [{}, {"on": null, "on": true}]}`: `list[1].on: given twice; remove one`,
		`{"named": {"a": {"on": 1}}}`:                             `named.a.on: must be true or false, found 1`,
		`{"named": {"a": {}, "b": {}, "a": null}}`:                `named.a: given twice; remove one`,
		`{"named": []}`:    `named: must be an object {…}, found []`,
		`{"large": -1}`:    `large: must be a whole number from 0 to 2^64-1, found -1`,
		`{"inner": "on"}`:  `inner: must be an object {…}, found "on"`,
		`{"count": "1"}`:   `count: must be a whole number, found "1"`,
		`{"at": "lab:80"}`: `at: "lab:80" is not ADDRESS:PORT with a numeric address`,
		`{"at": 80}`:       `at: must be a string, found 80`,
	} {
		if err := Decode([]byte(text), new(settings)); err == nil || err.Error() != want {
			t.Errorf("%s\ngot  %v\nwant %s", text, err, want)
		}
	}
	file := filepath.Join(t.TempDir(), "settings.json")
	if err := os.WriteFile(file, []byte(`{"count": "1"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Load(file, new(settings)); err == nil || err.Error() != file+`: count: must be a whole number, found "1"` {
		t.Error(err)
	}
}

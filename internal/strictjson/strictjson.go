package strictjson

import (
	"encoding"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"reflect"
)

// Address is an IP address with a port; the zero Address is "".
type Address struct{ netip.AddrPort }

// UnmarshalText implements encoding.TextUnmarshaler.
func (a *Address) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	addr, err := netip.ParseAddrPort(string(text))
	if err != nil {
		return fmt.Errorf("%q is not ADDRESS:PORT with a numeric address", text)
	}
	a.AddrPort = netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port())
	return nil
}

// Load reads a file with one JSON object into target, a pointer to a structure.
func Load(path string, target any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := Decode(data, target); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// Decode reads one JSON object into target, a pointer to a structure. As in
// package json, null changes nothing but a pointer, list or map.
func Decode(data []byte, target any) error {
	if err := CheckSyntax(data); err != nil {
		return err
	}
	return decodeObject("", data, reflect.ValueOf(target).Elem())
}

func decodeObject(path string, raw json.RawMessage, target reflect.Value) error {
	fields := make(Fields)
	for i := range target.NumField() {
		if key := target.Type().Field(i).Tag.Get("json"); key != "-" {
			fields[key] = func(path string, raw json.RawMessage) error { return decode(path, raw, target.Field(i)) }
		}
	}
	return Object(path, raw, fields)
}

func decode(path string, raw json.RawMessage, target reflect.Value) error {
	null := string(raw) == "null"
	switch kind := target.Kind(); {
	case kind == reflect.Pointer && !null:
		if target.IsNil() {
			target.Set(reflect.New(target.Type().Elem()))
		}
		return decode(path, raw, target.Elem())
	case kind == reflect.Slice && !null:
		list := reflect.MakeSlice(target.Type(), 0, 0) // not nil: an empty list differs from a missing one
		err := Array(path, raw, func(path string, raw json.RawMessage) error {
			item := reflect.New(target.Type().Elem()).Elem()
			err := decode(path, raw, item)
			list = reflect.Append(list, item)
			return err
		})
		target.Set(list)
		return err
	case kind == reflect.Map && !null:
		return decodeMap(path, raw, target)
	}
	text, isText := target.Addr().Interface().(encoding.TextUnmarshaler)
	if target.Kind() == reflect.Struct && !isText && !null {
		return decodeObject(path, raw, target)
	}
	if isText && raw[0] == '"' { // its error is clearer than that of package json
		var value string
		if err := json.Unmarshal(raw, &value); err != nil {
			return Errorf(path, "%v", err)
		}
		if err := text.UnmarshalText([]byte(value)); err != nil {
			return Errorf(path, "%v", err)
		}
		return nil
	}
	if err := json.Unmarshal(raw, target.Addr().Interface()); err != nil {
		return Errorf(path, "must be %s, found %s", article(target.Kind()), Excerpt(raw))
	}
	return nil
}

// decodeMap reads an object whose keys are names. A name that is given twice is an error.
func decodeMap(path string, raw json.RawMessage, target reflect.Value) error {
	target.Set(reflect.MakeMap(target.Type()))
	return Members(path, raw, func(key string, raw json.RawMessage) error {
		name := reflect.ValueOf(key).Convert(target.Type().Key())
		if target.MapIndex(name).IsValid() {
			return Errorf(Join(path, key), "given twice; remove one")
		}
		value := reflect.New(target.Type().Elem()).Elem()
		err := decode(Join(path, key), raw, value)
		target.SetMapIndex(name, value)
		return err
	})
}

func article(kind reflect.Kind) string {
	switch kind {
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Uint64:
		return "a whole number from 0 to 2^64-1"
	case reflect.Float64:
		return "a number"
	case reflect.Bool:
		return "true or false"
	}
	return "a string"
}

package android

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// ErrDenied means that the user of the logger lacks the permission.
var ErrDenied = errors.New("permission denied; run the logger as root, or as the shell user of adb")

// unavailable is the value of a missing integer in Android
// (CellInfo.UNAVAILABLE), unavailableLong that of a missing long.
const (
	unavailable     = math.MaxInt32
	unavailableLong = math.MaxInt64
)

// Refused returns the reason why a command printed no facts, or nil.
func Refused(text string) error {
	head := text[:min(len(text), 4096)]
	switch {
	case strings.Contains(head, "Permission Denial"), strings.Contains(head, "SecurityException"):
		return ErrDenied
	case strings.HasPrefix(strings.TrimSpace(head), "Can't find service"), strings.HasPrefix(strings.TrimSpace(head), "cmd: Can't find service"):
		return errors.New("this Android has no such service")
	case strings.TrimSpace(head) == "":
		return errors.New("it printed nothing")
	}
	return nil
}

// unread returns the error for a text without any expected content.
func unread(what, text string) error {
	text = strings.Join(strings.Fields(text[:min(len(text), 400)]), " ")
	return fmt.Errorf("no %s was found in its output, which begins %.80q", what, text)
}

// integer parses a number. A value that Android does not have is nil.
func integer(text string) *int {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || n == unavailable || n == -unavailable-1 {
		return nil
	}
	return &n
}

// within returns the number if it is in [least, most], otherwise nil.
func within(n *int, least, most int) *int {
	if n == nil || *n < least || *n > most {
		return nil
	}
	return n
}

// decimal returns the number as a float if it is in [least, most], otherwise
// nil.
func decimal(n *int, least, most int) *float64 {
	if n = within(n, least, most); n == nil {
		return nil
	}
	f := float64(*n)
	return &f
}

// realNumber parses a number with a fraction, with the decimal separator of any
// language.
func realNumber(text string) *float64 {
	f, err := strconv.ParseFloat(strings.Replace(strings.TrimSpace(text), ",", ".", 1), 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return nil
	}
	return &f
}

// pair matches `name=value` and `name = value`. A value ends at a space or a
// comma. If a name occurs more than once, the first value is used.
var pair = regexp.MustCompile(`([A-Za-z][A-Za-z0-9_]*) ?= ?(\[[^\]]*\]|[^\s,{}]*)`)

func fields(text string) map[string]string {
	values := make(map[string]string)
	for _, m := range pair.FindAllStringSubmatch(text, -1) {
		if _, known := values[m[1]]; !known {
			values[m[1]] = m[2]
		}
	}
	return values
}

// braces returns the text between the brace at the start of the text and its
// closing brace; all of the text without a closing brace.
func braces(text string) string {
	depth := 0
	for i, c := range []byte(text) {
		switch c {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return text[1:i]
			}
		}
	}
	return strings.TrimPrefix(text, "{")
}

// clip limits the length of a foreign text and makes it one line of UTF-8.
func clip(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "�"))
	if r := []rune(text); len(r) > most {
		return string(r[:most])
	}
	return text
}

var word = regexp.MustCompile(`^[A-Za-z0-9_+.-]{1,32}$`)

// name returns the text if it is an Android identifier, otherwise "".
func name(text string) string {
	if !word.MatchString(text) || text == "null" {
		return ""
	}
	return text
}

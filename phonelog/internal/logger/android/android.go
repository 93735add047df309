package android

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// ErrDenied says that the user that the logger runs as may not ask.
var ErrDenied = errors.New("permission denied; run the logger as root, or as the shell user of adb")

// unavailable is how Android writes a number that it does not have
// (CellInfo.UNAVAILABLE), and unavailableLong the same for a long one.
const (
	unavailable     = math.MaxInt32
	unavailableLong = math.MaxInt64
)

// Refused returns the reason for which a command printed no facts, if it did not.
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

// unread is the error for a text in which nothing is what it should be.
func unread(what, text string) error {
	text = strings.Join(strings.Fields(text[:min(len(text), 400)]), " ")
	return fmt.Errorf("no %s was found in what it printed, which begins %.80q", what, text)
}

// integer reads a number; what Android does not have is absent.
func integer(text string) *int {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || n == unavailable || n == -unavailable-1 {
		return nil
	}
	return &n
}

// within is a number if it is between two others, else absent.
func within(n *int, least, most int) *int {
	if n == nil || *n < least || *n > most {
		return nil
	}
	return n
}

// decimal is a number as the records have it, if it is between two others.
func decimal(n *int, least, most int) *float64 {
	if n = within(n, least, most); n == nil {
		return nil
	}
	f := float64(*n)
	return &f
}

// real reads a number with a fraction, whichever sign the phone's language
// separates it with.
func realNumber(text string) *float64 {
	f, err := strconv.ParseFloat(strings.Replace(strings.TrimSpace(text), ",", ".", 1), 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return nil
	}
	return &f
}

// fields are the values of `name=value` and `name = value` by their names; the
// first of a name counts. Values end at a blank or a comma.
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

// braces returns what stands between the brace at the beginning of the text and
// the one that closes it; all of it when none does.
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

// clip bounds a text that came from elsewhere, and keeps it one line of UTF-8.
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

// name is a text that is a name as Android has them, else "".
func name(text string) string {
	if !word.MatchString(text) || text == "null" {
		return ""
	}
	return text
}

package policy

import (
	"slices"
	"strconv"
	"strings"
)

const shownCharacters = 60

// show returns a text for a message: quoted, on one line, and shortened.
func show(text string) string {
	if runes := []rune(text); len(runes) > shownCharacters {
		text = string(runes[:shownCharacters-1]) + "…"
	}
	quoted := strconv.Quote(text)
	return "'" + strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`) + "'"
}

// unknown returns the message for a name that is not allowed: "unknown key 'prot'. Did
// you mean 'port'? Allowed: package, port".
func unknown(kind, found string, allowed []string) string {
	sorted := slices.Sorted(slices.Values(allowed))
	text := "unknown " + kind + " " + show(found) + "."
	if near := nearest(found, sorted); near != "" {
		text += " Did you mean '" + near + "'?"
	}
	listed := "none"
	if len(sorted) > 0 {
		listed = strings.Join(sorted, ", ")
	}
	return text + " Allowed: " + listed
}

// nearest returns the allowed name that was probably meant, or "".
func nearest(found string, allowed []string) string {
	best, least := "", 1+max(1, len(found)/3)
	for _, name := range allowed {
		if d := distance(strings.ToLower(found), name, least); d < least {
			best, least = name, d
		}
	}
	return best
}

// distance returns the edit distance of two words. It may stop at limit.
func distance(a, b string, limit int) int {
	if gap := len(a) - len(b); gap >= limit || -gap >= limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal, row[j+1] = row[j+1], min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

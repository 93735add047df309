package status

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// table is text in columns, with numbers right-aligned.
type table struct {
	head []string
	left []int // indices of the columns with text
	rows [][]string
}

// add adds a row. It replaces control characters, because some names come from others
// and could change the terminal.
func (t *table) add(row []string) {
	for i, cell := range row {
		row[i] = strings.Map(func(r rune) rune {
			if unicode.IsPrint(r) {
				return r
			}
			return '?'
		}, cell)
	}
	t.rows = append(t.rows, row)
}

func (t *table) write(b *strings.Builder) {
	widths := make([]int, len(t.head))
	all := append([][]string{t.head}, t.rows...)
	for _, row := range all {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range all {
		var line strings.Builder
		for i, cell := range row {
			padding := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i > 0 {
				line.WriteString("  ")
			}
			if slices.Contains(t.left, i) {
				line.WriteString(cell + padding)
			} else {
				line.WriteString(padding + cell)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

package tables

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

const (
	// filteredConnections is the maximum number of connections in a summary
	// that prints a display filter for each of them.
	filteredConnections = 5
	// filteredSubflows is the maximum number of subflows in a display filter.
	filteredSubflows = 8
)

// displayFilters writes the display filters of the connections, or of the
// largest one if there are many.
func (s *Summary) displayFilters(w io.Writer) {
	all := s.largest
	if len(all) > filteredConnections {
		all = all[:0:0]
		all = append(all, slices.MaxFunc(s.largest, func(a, b *connected) int {
			if a.carriedLess(b) {
				return -1
			}
			return 1
		}))
	}
	var lines []string
	for _, c := range all {
		if text := c.displayFilter(); text != "" {
			name := fmt.Sprintf("  connection %d", c.ConnectionID)
			if n := len(c.subflows); n > filteredSubflows {
				name += fmt.Sprintf(", %d of %d subflows", filteredSubflows, n)
			}
			lines = append(lines, name+": "+text)
		}
	}
	if len(lines) == 0 {
		return
	}
	fmt.Fprintln(w, "\ndisplay filter of Wireshark and tshark (-Y) for its packets:")
	fmt.Fprintln(w, strings.Join(lines, "\n"))
	if len(s.largest) > len(all) {
		fmt.Fprintln(w, "  others: --filter 'connection N'")
	}
}

// displayFilter returns an expression that selects the packets of the first
// subflows; empty if no address is known.
func (c *connected) displayFilter() string {
	var terms []string
	for i := range c.subflows[:min(len(c.subflows), filteredSubflows)] {
		sub := &c.subflows[i]
		if sub.Client == "" {
			continue
		}
		family := "ip.addr"
		if strings.Contains(sub.Client, ":") {
			family = "ipv6.addr"
		}
		terms = append(terms, fmt.Sprintf("%s == %s && tcp.port == %d && %s == %s && tcp.port == %d",
			family, sub.Client, sub.ClientPort, family, sub.Server, sub.ServerPort))
	}
	if len(terms) < 2 {
		return strings.Join(terms, "")
	}
	return "(" + strings.Join(terms, ") || (") + ")"
}

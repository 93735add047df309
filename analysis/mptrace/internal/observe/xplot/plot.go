package xplot

import (
	"strconv"

	"mplab/analysis/mptrace/internal/observe/spool"
)

// plot writes one diagram. Times are seconds since 1970. Each command states
// its colour.
type plot struct {
	file *spool.File
	line []byte
}

func newPlot(file *spool.File, title, y string) *plot {
	p := &plot{file: file}
	p.put([]byte("timeval double\ntitle\n" + title + "\nxlabel\ntime\nylabel\n" + y))
	return p
}

// number is a value in a diagram: an offset or a fraction.
type number interface{ uint64 | float64 }

// mark draws a mark: dot, diamond, uarrow, darrow, utick, dtick.
func mark[N number](p *plot, kind string, timeNS int64, y N, colour string) {
	b := append(append(p.line[:0], kind...), ' ')
	b = appendPoint(b, timeNS, y)
	p.put(append(append(b, ' '), colour...))
}

// line draws a line between two points.
func line[N number](p *plot, t1 int64, y1 N, t2 int64, y2 N, colour string) {
	b := append(p.line[:0], "line "...)
	b = append(appendPoint(b, t1, y1), ' ')
	b = append(appendPoint(b, t2, y2), ' ')
	p.put(append(b, colour...))
}

// text writes a text above (atext), right of (rtext) … a point.
func (p *plot) text(where string, timeNS int64, y uint64, colour, text string) {
	b := append(append(p.line[:0], where...), ' ')
	b = appendPoint(b, timeNS, y)
	b = append(append(b, ' '), colour...)
	p.put(append(append(b, '\n'), text...))
}

// end writes the command that shows the diagram, and closes the file.
func (p *plot) end() {
	p.put(append(p.line[:0], "go"...))
	p.file.Close()
}

func (p *plot) put(b []byte) {
	b = append(b, '\n')
	p.line = b
	_, _ = p.file.Write(b) // Close of the directory returns the error
}

func appendPoint[N number](b []byte, timeNS int64, y N) []byte {
	b = append(appendTime(b, timeNS), ' ')
	if place, whole := any(y).(uint64); whole {
		return strconv.AppendUint(b, place, 10)
	}
	return strconv.AppendFloat(b, float64(y), 'f', 3, 64)
}

// appendTime appends seconds with six decimals, the format that xplot reads.
func appendTime(b []byte, timeNS int64) []byte {
	b = append(strconv.AppendInt(b, timeNS/1e9, 10), '.')
	us := timeNS % 1e9 / 1e3
	for unit := int64(1e5); unit > 0; unit /= 10 {
		b = append(b, byte('0'+us/unit%10))
	}
	return b
}

// subflowColours excludes the colours of acknowledgements and windows.
var subflowColours = [...]string{"green", "red", "blue", "purple", "orange", "magenta", "pink"}

func subflowColour(sub int32) string { return subflowColours[int(sub)%len(subflowColours)] }

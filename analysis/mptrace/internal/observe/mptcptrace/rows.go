package mptcptrace

import (
	"strconv"

	"mplab/analysis/mptrace/internal/observe/spool"
)

// Forms of rows. A line: time, from, series, 1, to, original subflow or −1. A
// dot: time, value, series, 0, 0, −1. A dot with a fraction: the same without
// the last column.

func (w *way) vertical(f *spool.File, timeNS int64, from uint64, series int, to uint64, original int) {
	b := appendTime(w.line[:0], timeNS)
	b = strconv.AppendUint(append(b, ','), from, 10)
	b = strconv.AppendInt(append(b, ','), int64(series), 10)
	b = strconv.AppendUint(append(b, ",1,"...), to, 10)
	b = strconv.AppendInt(append(b, ','), int64(original), 10)
	w.put(f, b)
}

func (w *way) dot(f *spool.File, timeNS int64, value uint64, series int) {
	b := appendTime(w.line[:0], timeNS)
	b = strconv.AppendUint(append(b, ','), value, 10)
	b = strconv.AppendInt(append(b, ','), int64(series), 10)
	w.put(f, append(b, ",0,0,-1"...))
}

func (w *way) fraction(f *spool.File, timeNS int64, value float64, series int) {
	w.put(f, appendFraction(appendTime(w.line[:0], timeNS), value, series))
}

// numbered writes a dot with a fraction, with a sequence number instead of the
// time.
func (w *way) numbered(f *spool.File, number uint64, value float64, series int) {
	w.put(f, appendFraction(strconv.AppendUint(w.line[:0], number, 10), value, series))
}

func (w *way) put(f *spool.File, b []byte) {
	b = append(b, '\n')
	w.line = b
	_, _ = f.Write(b) // Close of the directory returns the error
}

func appendFraction(b []byte, value float64, series int) []byte {
	b = strconv.AppendFloat(append(b, ','), value, 'f', 6, 64)
	b = strconv.AppendInt(append(b, ','), int64(series), 10)
	return append(b, ",0,0"...)
}

// appendTime appends seconds with six decimals, truncated.
func appendTime(b []byte, timeNS int64) []byte {
	b = strconv.AppendInt(b, timeNS/1e9, 10)
	us := timeNS % 1e9 / 1e3
	b = append(b, '.')
	for unit := int64(1e5); unit > 0; unit /= 10 {
		b = append(b, byte('0'+us/unit%10))
	}
	return b
}

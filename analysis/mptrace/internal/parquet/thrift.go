package parquet

import "encoding/binary"

// thrift writes structs in Thrift's compact protocol, in which Parquet keeps
// its page headers and its footer. Fields come in the order of their ids.
type thrift struct {
	b    []byte
	last []int16 // id of the field before, of the open structs
}

// Types of the compact protocol.
const (
	thriftI16    = 4
	thriftI32    = 5
	thriftI64    = 6
	thriftBinary = 8
	thriftList   = 9
	thriftStruct = 12
)

func (t *thrift) reset() { t.b, t.last = t.b[:0], append(t.last[:0], 0) }

func (t *thrift) field(id int16, kind byte) {
	last := &t.last[len(t.last)-1]
	t.b = append(t.b, byte(id-*last)<<4|kind) // no two ids here are 16 apart
	*last = id
}

func (t *thrift) i16(id int16, v int64) { t.field(id, thriftI16); t.b = binary.AppendVarint(t.b, v) }
func (t *thrift) i32(id int16, v int64) { t.field(id, thriftI32); t.b = binary.AppendVarint(t.b, v) }
func (t *thrift) i64(id int16, v int64) { t.field(id, thriftI64); t.b = binary.AppendVarint(t.b, v) }

func (t *thrift) text(id int16, s string) { t.field(id, thriftBinary); t.bareText(s) }

// bareText is a text in a list.
func (t *thrift) bareText(s string) {
	t.b = binary.AppendUvarint(t.b, uint64(len(s)))
	t.b = append(t.b, s...)
}

// list begins a list of n elements, which follow.
func (t *thrift) list(id int16, kind byte, n int) {
	t.field(id, thriftList)
	if n < 15 {
		t.b = append(t.b, byte(n)<<4|kind)
		return
	}
	t.b = binary.AppendUvarint(append(t.b, 15<<4|kind), uint64(n))
}

// begin begins a struct that is a field, open one in a list; end ends both.
func (t *thrift) begin(id int16) { t.field(id, thriftStruct); t.open() }
func (t *thrift) open()          { t.last = append(t.last, 0) }
func (t *thrift) end()           { t.b, t.last = append(t.b, 0), t.last[:len(t.last)-1] }

package parquet

import "encoding/binary"

// thrift encodes structs in Thrift's compact protocol, the format of Parquet's
// page headers and footer. Fields must be written in the order of their IDs.
type thrift struct {
	b    []byte
	last []int16 // ID of the previous field of each open struct
}

// Types of the compact protocol.
const (
	thriftTrue   = 1
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
	t.b = append(t.b, byte(id-*last)<<4|kind) // IDs differ by less than 16 here
	*last = id
}

func (t *thrift) i16(id int16, v int64) { t.field(id, thriftI16); t.b = binary.AppendVarint(t.b, v) }
func (t *thrift) i32(id int16, v int64) { t.field(id, thriftI32); t.b = binary.AppendVarint(t.b, v) }
func (t *thrift) i64(id int16, v int64) { t.field(id, thriftI64); t.b = binary.AppendVarint(t.b, v) }

func (t *thrift) text(id int16, s string) { t.field(id, thriftBinary); t.bareText(s) }

// bareText writes a string as a list element.
func (t *thrift) bareText(s string) {
	t.b = binary.AppendUvarint(t.b, uint64(len(s)))
	t.b = append(t.b, s...)
}

// list starts a list of n elements, which the caller writes next.
func (t *thrift) list(id int16, kind byte, n int) {
	t.field(id, thriftList)
	if n < 15 {
		t.b = append(t.b, byte(n)<<4|kind)
		return
	}
	t.b = binary.AppendUvarint(append(t.b, 15<<4|kind), uint64(n))
}

// begin starts a struct as a field, open one as a list element; end ends both.
func (t *thrift) begin(id int16) { t.field(id, thriftStruct); t.open() }
func (t *thrift) open()          { t.last = append(t.last, 0) }
func (t *thrift) end()           { t.b, t.last = append(t.b, 0), t.last[:len(t.last)-1] }

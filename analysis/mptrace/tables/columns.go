package tables

import (
	"reflect"
	"unsafe"

	"mplab/analysis/mptrace/internal/parquet"
)

// column copies one field of the rows into chunks. Reflection finds the field
// once; afterwards, copying a value is one load and one store.
type column struct {
	offset uintptr // of the field
	gather gather
}

// gather appends one field of len(values) rows to a chunk. Rows are size bytes
// apart; values is a scratch buffer.
type gather func(c *parquet.Chunk, field unsafe.Pointer, size uintptr, values []uint64)

func columnsOf[R any]() []column {
	row := reflect.TypeFor[R]()
	columns := make([]column, row.NumField())
	for i := range columns {
		f := row.Field(i)
		columns[i] = column{f.Offset, gathers[f.Type]}
	}
	return columns
}

// gathers maps a field type to its gather function. The functions depend only
// on the memory layout: a float64 is read as uint64, a bool as uint8 with 0 or
// 1.
var gathers = map[reflect.Type]gather{
	reflect.TypeFor[int32]():          gatherValues[int32],
	reflect.TypeFor[int64]():          gatherValues[uint64],
	reflect.TypeFor[float64]():        gatherValues[uint64],
	reflect.TypeFor[bool]():           gatherValues[uint8],
	reflect.TypeFor[string]():         gatherTexts,
	reflect.TypeFor[Maybe[int32]]():   gatherKnown[int32],
	reflect.TypeFor[Maybe[int64]]():   gatherKnown[uint64],
	reflect.TypeFor[Maybe[float64]](): gatherKnown[uint64],
	reflect.TypeFor[Maybe[bool]]():    gatherKnown[uint8],
}

func gatherValues[T int32 | uint64 | uint8](c *parquet.Chunk, field unsafe.Pointer, size uintptr, values []uint64) {
	if same, is := c.Same(); is { // in most columns, most rows hold the same value
		i := 0
		for i < len(values) && uint64(*(*T)(unsafe.Add(field, uintptr(i)*size))) == same {
			i++
		}
		if i == len(values) {
			c.AppendSame(i)
			return
		}
	}
	for i := range values {
		values[i] = uint64(*(*T)(unsafe.Add(field, uintptr(i)*size))) // sign-extends int32
	}
	c.Append(values)
}

func gatherKnown[T int32 | uint64 | uint8](c *parquet.Chunk, field unsafe.Pointer, size uintptr, values []uint64) {
	var known uint64
	count := 0
	for i := range values {
		if m := (*Maybe[T])(unsafe.Add(field, uintptr(i)*size)); m.Known {
			known |= 1 << i
			values[count] = uint64(m.Value)
			count++
		}
	}
	c.AppendKnown(values[:count], known, len(values))
}

func gatherTexts(c *parquet.Chunk, field unsafe.Pointer, size uintptr, values []uint64) {
	for i := range values {
		values[i] = c.Words.Of(*(*string)(unsafe.Add(field, uintptr(i)*size)))
	}
	c.Append(values)
}

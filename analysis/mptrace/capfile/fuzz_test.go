package capfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"
)

// FuzzRead: for any bytes, reading ends with io.EOF or one of the errors, the
// records are within the bytes read, and the batch size does not matter.
func FuzzRead(f *testing.F) {
	f.Add(pcap(binary.LittleEndian, 0xa1b2c3d4, "abcd", ""), uint16(16))
	f.Add(pcap(binary.BigEndian, 0xa1b23c4d, "abcd"), uint16(20))
	f.Add(bytes.Join([][]byte{
		section, wlan0, rmnet0, block(0xbad, 1, 2, 3, 4), enhanced(1, 7, "abcd"),
		block(blockSimple, 4, 0, 0, 0, 'i', 'j', 'k', 'l'), section, rmnet0, enhanced(0, 0, "mnop"),
		block(blockStatistics, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 8, 0, 1, 0, 0, 0, 0, 0, 0, 0),
	}, nil), uint16(64))
	f.Fuzz(func(t *testing.T, b []byte, size uint16) {
		whole, wholeErr := fuzzRead(t, b, 0)
		pieces, piecesErr := fuzzRead(t, b, int(size))
		if !bytes.Equal(whole, pieces) || wholeErr != piecesErr {
			t.Errorf("% x, %s\n% x, %s", whole, wholeErr, pieces, piecesErr)
		}
	})
}

// fuzzRead returns the content of the records and the kind of the error.
func fuzzRead(t *testing.T, b []byte, size int) (said []byte, kind string) {
	file, err := New("x", bytes.NewReader(b))
	if err != nil {
		return nil, kindOf(t, err)
	}
	defer file.Close()
	batch := Batch{Size: size}
	for reads := 0; ; reads++ {
		err := file.Read(&batch)
		for _, r := range batch.Records {
			if r.TimeNS < 0 || file.Interfaces()[r.Iface].LinkType < 0 {
				t.Errorf("%+v", r)
			}
			said = binary.LittleEndian.AppendUint64(said, uint64(r.TimeNS))
			said = binary.LittleEndian.AppendUint32(said, r.OrigLen)
			said = append(append(said, byte(r.Iface)), r.Data...)
		}
		if err != nil {
			if again := file.Read(&batch); again != err || len(batch.Records) > 0 {
				t.Errorf("%v after %v", again, err)
			}
			return said, kindOf(t, err)
		}
		if len(batch.Records) == 0 || reads > len(b) {
			t.Fatalf("%d records in read %d", len(batch.Records), reads)
		}
	}
}

func kindOf(t *testing.T, err error) string {
	for _, known := range []error{io.EOF, ErrCut, ErrDamaged, ErrEmpty, ErrNotCapture} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	t.Errorf("unknown error: %v", err)
	return ""
}

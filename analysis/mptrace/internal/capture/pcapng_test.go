package capture

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"mplab/analysis/mptrace/capfile"
)

func TestWriterIsReadable(t *testing.T) {
	var b bytes.Buffer
	w, err := NewWriter(&b, Description{Interface: "wlan0", LinkType: 1, SnapLen: 100, OS: "Linux", Application: "test"})
	if err != nil {
		t.Fatal(err)
	}
	const when = 1_700_000_000_123_456_789
	if err := errors.Join(w.Packet(when, []byte("abc"), []byte("de"), 1500), w.Statistics(when, when+1, 5, 4)); err != nil {
		t.Fatal(err)
	}
	f, err := capfile.New("x", &b)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var batch capfile.Batch
	if err := f.Read(&batch); err != nil || len(batch.Records) != 1 {
		t.Fatalf("%d records, %v", len(batch.Records), err)
	}
	if r := batch.Records[0]; r.TimeNS != when || string(r.Data) != "abcde" || r.OrigLen != 1500 {
		t.Errorf("%+v", r)
	}
	if err := f.Read(&batch); err != io.EOF {
		t.Error(err)
	}
	if i := f.Interfaces()[0]; i.Name != "wlan0" || i.Dropped != 4 {
		t.Errorf("%+v", i)
	}
}

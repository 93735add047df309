package jsonlog

import (
	"testing"
	"time"
)

func TestThrottle(t *testing.T) {
	start := time.Unix(1_000_000, 0)
	var bucket Throttle
	written := 0
	for range 1000 {
		if _, ok := bucket.Take(start); ok {
			written++
		}
	}
	if written != ThrottleBurst {
		t.Errorf("%d notices at once", written)
	}
	if suppressed, ok := bucket.Take(start.Add(ThrottlePause)); !ok || suppressed != 1000-ThrottleBurst {
		t.Errorf("%d, %v", suppressed, ok)
	}
	if _, ok := bucket.Take(start.Add(ThrottlePause)); ok {
		t.Error("two notices in one pause")
	}
	for range ThrottleBurst {
		if _, ok := bucket.Take(start.Add(time.Hour)); !ok {
			t.Error("not filled again")
		}
	}
	if _, ok := bucket.Take(start.Add(time.Hour)); ok {
		t.Error("filled beyond the brim")
	}
}

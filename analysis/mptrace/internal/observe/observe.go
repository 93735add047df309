package observe

import (
	"mplab/analysis/mptrace/internal/mptcp"
	"mplab/analysis/mptrace/internal/tcp"
	"mplab/analysis/mptrace/tables"
)

// None is an observer that ignores all calls. Observers embed it and override
// the methods that they need.
type None struct{}

func (None) Subflow(*mptcp.Sub)                                      {}
func (None) Data(*mptcp.Sub, int, int64, uint64, uint64, *mptcp.Sub) {}
func (None) Mapping(*mptcp.Sub, int, int64, uint64, uint64)          {}
func (None) Ack(*mptcp.Sub, int, int64, uint64, uint32)              {}
func (None) Event(*mptcp.Sub, *tables.Event)                         {}
func (None) Segment(*mptcp.Sub, int, *tcp.Segment)                   {}
func (None) End(*mptcp.Conn, *tables.Connection)                     {}

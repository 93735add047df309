package model

// Counters count the events in one direction of a link since the start. At any time
//
//	packets_in + duplicated = packets_out + dropped_queue + dropped_codel + dropped_loss + dropped_send
//	                        + dropped_memory + queue_packets + delayed_packets
//
// Bytes are IP bytes.
type Counters struct {
	PacketsIn      uint64  `json:"packets_in"`
	BytesIn        uint64  `json:"bytes_in"`
	PacketsOut     uint64  `json:"packets_out"`
	BytesOut       uint64  `json:"bytes_out"`
	DroppedQueue   uint64  `json:"dropped_queue"`   // the queue was full
	DroppedCodel   uint64  `json:"dropped_codel"`   // by CoDel, because packets had waited too long
	DroppedLoss    uint64  `json:"dropped_loss"`    // random loss or loss model
	LossBursts     uint64  `json:"loss_bursts"`     // sequences of consecutively lost packets
	Duplicated     uint64  `json:"duplicated"`      // copies made
	Reordered      uint64  `json:"reordered"`       // overtook at least one packet
	Stripped       uint64  `json:"stripped"`        // lost their Multipath TCP options
	DroppedSend    uint64  `json:"dropped_send"`    // refused by the kernel (interface down, no buffers)
	DroppedMemory  uint64  `json:"dropped_memory"`  // maxHeldBytes reached
	QueueBytes     int     `json:"queue_bytes"`     // now, not completely serialised
	QueuePackets   int     `json:"queue_packets"`   // now, not completely serialised
	DelayedPackets int     `json:"delayed_packets"` // now, serialised and in flight
	OversizeFrames uint64  `json:"oversize_frames"` // larger than the interface's MTU: segmentation offload is on
	LatePackets    uint64  `json:"late_packets"`    // sent later than lateAfter after their departure time
	LateMicros     uint64  `json:"late_us"`         // sum of these delays, µs
	LatestMs       float64 `json:"latest_ms"`       // the largest such delay since the last change of conditions
	KernelDropped  uint64  `json:"kernel_dropped"`  // never seen by the emulator: the receive ring was full
}

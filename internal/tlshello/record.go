package tlshello

// Records, RFC 8446 §5.1. Older versions of TLS have the same format.
const (
	RecordHandshake = 22
	RecordHeader    = 5 // bytes before the fragment

	maxFragment = 1 << 14
)

// Join returns the fragments of the handshake records at the start of a stream.
// ended means that other data follows them.
func Join(stream []byte) (message []byte, ended bool) {
	first := true
	for len(stream) > 0 {
		header := stream[:min(len(stream), RecordHeader)]
		if header[0] != RecordHandshake || len(header) > 1 && header[1] != 3 {
			return message, true
		}
		if len(header) < RecordHeader {
			break
		}
		size := int(header[3])<<8 | int(header[4])
		if size == 0 || size > maxFragment { // RFC 8446 §5.1: not empty
			return message, true
		}
		fragment := stream[RecordHeader:min(len(stream), RecordHeader+size)]
		stream = stream[RecordHeader+len(fragment):]
		if first { // often the only one: no copy
			message, first = fragment[:len(fragment):len(fragment)], false
		} else {
			message = append(message, fragment...)
		}
	}
	return message, false
}

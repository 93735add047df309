package sniff

import (
	"mplab/internal/tlshello"
	"mplab/mpflex/internal/names"
)

// readTLS parses a ClientHello. It may be spread over several records and be
// incomplete.
func readTLS(data []byte) Result {
	message, ended := tlshello.Join(data)
	hello, state := tlshello.Parse(message)
	if hello.HasServerName {
		if name, ok := names.Normalize(hello.ServerName); ok {
			return Result{Named, name, SNI}
		}
		return none
	}
	if ended || state != tlshello.Partial {
		return none
	}
	return needMore
}

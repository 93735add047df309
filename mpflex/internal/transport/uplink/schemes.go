package uplink

import (
	"context"
	"fmt"
	"io"
	"time"

	"mplab/internal/netx"
	"mplab/mpflex/internal/transport/session"
	"mplab/mpflex/wire"
)

// schemesTimeout bounds how long the proxy may take to accept a table.
const schemesTimeout = 10 * time.Second

// SendSchemes sends the proxy a new table of schemes for an open session, and waits
// until the proxy has accepted it. New streams may then use the labels of the table. It
// fails if the proxy refuses the table or does not answer within schemesTimeout.
func SendSchemes(ctx context.Context, s *session.Session, table []byte) error {
	st, err := s.Open()
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = st.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	status, err := sendSchemes(st, table)
	switch {
	case err != nil:
		netx.Abort(st)
		return err
	case status != wire.OK:
		netx.Abort(st)
		return fmt.Errorf("%s", status)
	}
	return st.Close()
}

func sendSchemes(st *session.Stream, table []byte) (wire.Status, error) {
	if err := st.SetDeadline(time.Now().Add(schemesTimeout)); err != nil {
		return 0, err
	}
	open := wire.Open{Command: wire.Schemes}
	if _, err := st.Write(append(open.Append(nil), table...)); err != nil {
		return 0, err
	}
	if err := st.CloseWrite(); err != nil {
		return 0, err
	}
	var status [1]byte
	_, err := io.ReadFull(st, status[:])
	return wire.Status(status[0]), err
}

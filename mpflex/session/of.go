package session

// Session is the one that the stream belongs to.
func (st *Stream) Session() *Session { return st.s }

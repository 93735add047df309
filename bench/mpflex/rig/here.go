package rig

// Here returns the namespace of this process as a node without links.
func Here() *Node { return self("here") }

// PID returns the process ID of the program.
func (p *Program) PID() int { return p.cmd.Process.Pid }

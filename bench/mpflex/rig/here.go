package rig

// Here is the namespace of this process as a node, without any links.
func Here() *Node { return self("here") }

// PID is the number of the program's process.
func (p *Program) PID() int { return p.cmd.Process.Pid }

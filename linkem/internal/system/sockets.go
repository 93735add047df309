package system

import "golang.org/x/sys/unix"

// SetBuffers requests receive and send buffers of the given bytes, beyond the kernel's limits if permitted.
func SetBuffers(fd, bytes int) {
	for force, ordinary := range map[int]int{unix.SO_RCVBUFFORCE: unix.SO_RCVBUF, unix.SO_SNDBUFFORCE: unix.SO_SNDBUF} {
		if unix.SetsockoptInt(fd, unix.SOL_SOCKET, force, bytes) != nil {
			_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, ordinary, bytes) // limited by the kernel
		}
	}
}

// BringUp brings up an interface of this network namespace.
func BringUp(name string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	request, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, request); err != nil {
		return err
	}
	flags := request.Uint16()
	if flags&unix.IFF_UP != 0 {
		return nil
	}
	request.SetUint16(flags | unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request)
}

// Package cli is the command line of linkem: flags, help and output. The commands are implemented in the packages that
// they call. Its tests run the whole program in small networks.
package cli

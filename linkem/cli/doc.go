// Package cli is the command line of linkem: flags, help and the text that is printed. What the commands do is in the
// packages that they call. Its tests run the program as a whole in small networks.
package cli

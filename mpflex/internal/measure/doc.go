// Package measure groups tests of the connection between phone and proxy that a user or
// an experiment runs: check and udpjitter. Nothing that carries an application's
// traffic belongs here.
package measure

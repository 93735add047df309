// Package testkit has helpers for the tests of several packages: waiting for an
// event, reading logs, servers on the loopback interface. No program imports
// it.
package testkit

// Package testkit has what tests of several packages need: waiting for an event,
// reading logs, servers on the loopback interface. No program imports it.
package testkit

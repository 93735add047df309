// Package linktest tests sessions over two emulated links, WiFi and LTE, between
// network namespaces. Where the machine does not permit these the tests are
// skipped, with the reason.
//
// Tests that need no link are in session itself.
package linktest

// Package linktest tests sessions over two emulated links, WiFi and LTE, between
// network namespaces. Where the machine does not permit these the tests are
// skipped, with the reason.
package linktest

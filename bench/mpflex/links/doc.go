// Package links defines the link conditions of the benchmark and their physical limits. Package rig emulates the links.
package links

// Package links holds the link conditions of the benchmark and the physical limits
// under them. Emulating them belongs to rig.
package links

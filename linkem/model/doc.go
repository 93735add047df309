// Package model is what a link does to frames: loss, queue, serialisation, delay, in one direction. It is told the time
// and holds no clock, no socket and no lock, so the same input has the same outcome. How conditions are read and frames
// come in and go out is not its business.
package model

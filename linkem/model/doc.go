// Package model describes the effect of a link on frames in one direction: loss, queue, serialisation, delay. The
// caller passes all times. The model has no clock, socket or lock, so equal input yields equal output. It neither reads
// conditions nor receives or sends frames.
package model

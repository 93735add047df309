// Package pipeline passes blocks of work through stages with several
// goroutines.
//
// Each stage has a goroutine; if there are fewer goroutines, the one that fills
// blocks also does the first stages. So the data of a stage stays in the cache
// of one processor and needs no lock. Each stage processes one block at a time,
// in the order in which the blocks were filled, so the result does not depend on
// the number of goroutines.
package pipeline

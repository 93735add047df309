// Package pipeline carries blocks of work through stages with several goroutines.
//
// A goroutine takes a block through all its stages before it begins another
// one, so that a block stays in the cache of one processor, and nobody waits
// while there is a stage that nobody works at. Each stage takes one block at a
// time, in the order in which they were filled: what belongs to a stage needs
// no other lock, and the outcome does not depend on the number of goroutines.
package pipeline

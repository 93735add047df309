// Package pipeline passes blocks of work through stages with several
// goroutines.
//
// A goroutine carries a block through all stages before it starts another one.
// So a block stays in the cache of one processor, and no goroutine waits while
// a stage is free. Each stage processes one block at a time, in the order in
// which the blocks were filled. So the data of a stage needs no other lock, and
// the result does not depend on the number of goroutines.
package pipeline

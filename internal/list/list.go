// Package list is a doubly linked list whose elements hold their links, unlike
// those of container/list: adding an element allocates nothing, and an element
// is removed without a reference to its place.
package list

// Links are the neighbours of an element. The type of the elements embeds it.
type Links[T any] struct{ prev, next *T }

func (l *Links[T]) links() *Links[T] { return l }

// Element is a pointer to a type that embeds its Links.
type Element[T any] interface {
	*T
	links() *Links[T]
}

// List is a list in the order of arrival. The zero List is empty. An element can
// be in one list at a time.
type List[T any, P Element[T]] struct {
	front, back *T
	len         int
}

// Len returns the number of elements.
func (l *List[T, P]) Len() int { return l.len }

// Front returns the first element, or nil.
func (l *List[T, P]) Front() *T { return l.front }

// Next returns the element behind e, or nil.
func (l *List[T, P]) Next(e *T) *T { return P(e).links().next }

// PushBack adds an element that is in no list.
func (l *List[T, P]) PushBack(e *T) {
	*P(e).links() = Links[T]{prev: l.back}
	if l.back == nil {
		l.front = e
	} else {
		P(l.back).links().next = e
	}
	l.back = e
	l.len++
}

// Remove removes an element of the list.
func (l *List[T, P]) Remove(e *T) {
	at := P(e).links()
	if at.prev == nil {
		l.front = at.next
	} else {
		P(at.prev).links().next = at.next
	}
	if at.next == nil {
		l.back = at.prev
	} else {
		P(at.next).links().prev = at.prev
	}
	*at = Links[T]{}
	l.len--
}

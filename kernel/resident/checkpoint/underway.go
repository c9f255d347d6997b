package checkpoint

import (
	"context"
	"sync"
)

// Underway is what is being saved and restored: an interrupt ends it, though it is no op. The zero value is of use.
type Underway struct {
	mu   sync.Mutex
	next int
	end  map[int]context.CancelFunc
}

// Begin is a context for one of them, until done is called.
func (u *Underway) Begin(ctx context.Context) (_ context.Context, done func()) {
	ctx, end := context.WithCancel(ctx)
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.end == nil {
		u.end = map[int]context.CancelFunc{}
	}
	u.next++
	id := u.next
	u.end[id] = end
	return ctx, func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.end, id)
		end()
	}
}

// Interrupt ends all of them.
func (u *Underway) Interrupt() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, end := range u.end {
		end()
	}
}

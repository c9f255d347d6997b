package resident

import (
	"context"
	"sync"

	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/wire"
)

// files are those that are being saved or restored: an interrupt ends them, though they are no ops.
type files struct {
	mu   sync.Mutex
	next int
	end  map[int]context.CancelFunc
}

func (fs *files) begin(ctx context.Context) (context.Context, func()) {
	ctx, end := context.WithCancel(ctx)
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.end == nil {
		fs.end = map[int]context.CancelFunc{}
	}
	fs.next++
	id := fs.next
	fs.end[id] = end
	return ctx, func() {
		fs.mu.Lock()
		defer fs.mu.Unlock()
		delete(fs.end, id)
		end()
	}
}

func (fs *files) interrupt() {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for _, end := range fs.end {
		end()
	}
}

// file saves or restores.
func (c *conn) file(r wire.Request, do func(context.Context, *store.Client, wire.Request) (wire.Answer, error)) (wire.Answer, error) {
	ctx, done := c.s.files.begin(c.Ctx)
	defer done()
	return do(ctx, c.Client, r)
}

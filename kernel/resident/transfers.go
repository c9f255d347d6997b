package resident

import (
	"context"
	"sync"

	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/wire"
)

// transfers are the files that are being saved or restored: an interrupt ends them, though they are no ops.
type transfers struct {
	mu   sync.Mutex
	next int
	end  map[int]context.CancelFunc
}

func (ts *transfers) begin(ctx context.Context) (context.Context, func()) {
	ctx, end := context.WithCancel(ctx)
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.end == nil {
		ts.end = map[int]context.CancelFunc{}
	}
	ts.next++
	id := ts.next
	ts.end[id] = end
	return ctx, func() {
		ts.mu.Lock()
		defer ts.mu.Unlock()
		delete(ts.end, id)
		end()
	}
}

func (ts *transfers) interrupt() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for _, end := range ts.end {
		end()
	}
}

// transfer saves or restores.
func (c *conn) transfer(r wire.Request, do func(context.Context, *store.Client, wire.Request) (wire.Answer, error)) (wire.Answer, error) {
	ctx, done := c.s.transfers.begin(c.Ctx)
	defer done()
	return do(ctx, c.Client, r)
}

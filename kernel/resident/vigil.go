package resident

import (
	"time"

	"github.com/attnb/attnb/kernel/peer"
	"github.com/attnb/attnb/kernel/wire"
)

// patience is how long a request may take before its client is watched.
const patience = 20 * time.Millisecond

// vigil ends the client's context when the client goes away while its request is answered: a cell that is interrupted must not
// leave the device busy. The returned function ends the vigil. An op that is only queued has none: it could not be stopped, and a
// timer costs more than the rest of the answer where processors are slow to wake.
func (c *conn) vigil(r wire.Request) (end func()) {
	if r.Kind == wire.KindRun && !c.s.d.Interruptible() {
		return func() {}
	}
	return peer.Vigil(c.c, patience, c.leave)
}

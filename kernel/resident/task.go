package resident

import (
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/attnb/attnb/kernel/wire"
)

// task is a request that may take long, while it is answered. A nil task takes no word of its progress.
type task struct {
	what  string
	began time.Time
	done  atomic.Uint64 // bits of a fraction
	share atomic.Uint64 // bits of the fraction that the op which runs on the device will add
}

// step says that the device now does what takes the task from one fraction to another.
func (t *task) step(from, to float64) {
	if t != nil {
		t.share.Store(math.Float64bits(to - from))
		t.advance(from)
	}
}

// advance says how much of the task is done.
func (t *task) advance(fraction float64) {
	if t != nil && fraction >= 0 { // not NaN
		t.done.Store(math.Float64bits(min(fraction, 1)))
	}
}

// tasks are those under way, oldest first. The device works on the oldest; the others wait or do what needs no device.
type tasks struct {
	mu   sync.Mutex
	list []*task
}

func (ts *tasks) begin(what string) *task {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t := &task{what: what, began: time.Now()}
	ts.list = append(ts.list, t)
	return t
}

func (ts *tasks) end(t *task) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.list = slices.DeleteFunc(ts.list, func(o *task) bool { return o == t })
}

// describe puts the tasks into a status. progress is the device's, of its op.
func (ts *tasks) describe(s *wire.Status, progress float64) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if len(ts.list) == 0 {
		return
	}
	t := ts.list[0]
	s.Running = t.what
	s.RunningFor = int(time.Since(t.began).Milliseconds())
	s.Done = min(math.Float64frombits(t.done.Load())+progress*math.Float64frombits(t.share.Load()), 1)
	s.Waiting = len(ts.list) - 1
}

// taskName is what a request is called while it runs; empty: it is answered at once.
func taskName(r wire.Request) string {
	switch r.Kind {
	case wire.KindRun:
		return opName(r.Op, r.Params)
	case wire.KindUpload:
		return "FromSlice"
	case wire.KindLoad:
		return "Load"
	case wire.KindDownload:
		return "Download"
	case wire.KindPicture:
		return "Heatmap"
	case wire.KindDraw:
		if r.Draw != nil {
			return subjects[r.Draw.Subject].name
		}
	case wire.KindAsk:
		if r.Question != nil {
			return topicName(r.Question.Topic)
		}
	case wire.KindMap, wire.KindTile:
		return "Map"
	case wire.KindCheck:
		return "Check"
	case wire.KindCompare:
		return "Compare"
	case wire.KindExplore, wire.KindRerun:
		return "Explore"
	}
	return ""
}

// taskKey is the context key of a client's current task.
type taskKey struct{}

// withTask makes a context whose task is what current holds at the time of asking.
func withTask(ctx context.Context, current *atomic.Pointer[task]) context.Context {
	return context.WithValue(ctx, taskKey{}, current)
}

// taskOf is the task that is done under ctx, or nil.
func taskOf(ctx context.Context) *task {
	if current, ok := ctx.Value(taskKey{}).(*atomic.Pointer[task]); ok {
		return current.Load()
	}
	return nil
}

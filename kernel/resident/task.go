package resident

import (
	"slices"
	"sync"
	"time"

	"github.com/attnb/attnb/kernel/resident/judge"
	"github.com/attnb/attnb/kernel/resident/show"
	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/wire"
)

// task is a request that may take long, while it is answered.
type task struct {
	what     string
	began    time.Time
	progress store.Progress
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

// describe puts the tasks into a status. ofOp is how far the device is with its op.
func (ts *tasks) describe(s *wire.Status, ofOp float64) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if len(ts.list) == 0 {
		return
	}
	t := ts.list[0]
	s.Running = t.what
	s.RunningFor = int(time.Since(t.began).Milliseconds())
	s.Done = t.progress.Fraction(ofOp)
	s.Waiting = len(ts.list) - 1
}

// taskName is what a request is called while it runs; empty: it is answered at once.
func taskName(r wire.Request) string {
	switch r.Kind {
	case wire.KindRun:
		return store.OpName(r.Op, r.Params)
	case wire.KindUpload:
		return "FromSlice"
	case wire.KindLoad:
		return "Load"
	case wire.KindSave:
		return "Save"
	case wire.KindRestore:
		return "Restore"
	case wire.KindModel:
		return "OpenModel"
	case wire.KindDownload:
		return "Download"
	case wire.KindPicture:
		return "Heatmap"
	case wire.KindDraw:
		if r.Draw != nil {
			return show.SubjectName(r.Draw.Subject)
		}
	case wire.KindAsk:
		if r.Question != nil {
			return judge.Name(r.Question.Topic)
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

package host

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/attnb/attnb/cudaops"
)

// phase is work(0), ..., work(n-1), each once, on the workers. Calls must not depend on one another.
type phase struct {
	n    int
	work func(i int)
}

// parallel runs one phase.
func (b *Backend) parallel(n int, work func(i int)) error { return b.phases(phase{n, work}) }

// phases runs phases one after the other. Between two calls of one it looks whether the op was interrupted.
func (b *Backend) phases(all ...phase) error {
	b.stop.Store(false)
	b.busy.Store(true)
	defer b.busy.Store(false)
	j := &job{stop: &b.stop, phases: all, states: make([]state, len(all))}
	widest := 0
	for _, p := range all {
		j.pieces += p.n
		widest = max(widest, p.n)
	}
	b.job.Store(j)
	defer b.job.Store(nil)
	for int(b.helpers.Load()) < min(b.workers, widest)-1 {
		b.helpers.Add(1)
		go b.help()
	}
	j.run()
	j.end()
	if b.stop.Load() {
		return cudaops.ErrInterrupted
	}
	return nil
}

// job is the phases of an op on their way.
type job struct {
	stop    *atomic.Bool
	phases  []phase
	states  []state
	pieces  int          // of all phases
	begun   atomic.Int64 // pieces
	running atomic.Int64 // workers that may be at a piece
	closed  atomic.Bool  // nobody begins another piece
}

// state is how far a phase is.
type state struct{ begun, done atomic.Int64 }

// run works until no piece is left.
func (j *job) run() {
	for at := range j.phases {
		p, s := &j.phases[at], &j.states[at]
		for j.piece(p, s) {
		}
		await(func() bool { return s.done.Load() >= int64(p.n) || j.stop.Load() || j.closed.Load() })
	}
}

// piece takes a piece of a phase, if one is left.
func (j *job) piece(p *phase, s *state) bool {
	j.running.Add(1)
	defer j.running.Add(-1)
	if j.stop.Load() || j.closed.Load() {
		return false
	}
	i := int(s.begun.Add(1)) - 1
	if i >= p.n {
		return false
	}
	j.begun.Add(1)
	p.work(i)
	s.done.Add(1)
	return true
}

// end returns when nobody is at a piece, or will be.
func (j *job) end() {
	j.closed.Store(true)
	await(func() bool { return j.running.Load() == 0 })
}

// patience is how long a worker looks for the next op before it goes. To wake one takes 80 us, as long as a decode over 1000 keys.
const patience = 200 * time.Microsecond

// help works for one op after the other, while they come without a pause.
func (b *Backend) help() {
	defer b.helpers.Add(-1)
	var last *job
	for since := time.Now(); time.Since(since) < patience; {
		if j := b.job.Load(); j != nil && j != last {
			j.run()
			last, since = j, time.Now()
		}
		runtime.Gosched()
	}
}

// await looks again and again: what it waits for takes microseconds, and so would waking it. Where it takes longer, it sleeps in between.
func await(done func() bool) {
	for turn := 0; !done(); turn++ {
		if turn < 1000 {
			runtime.Gosched()
		} else {
			time.Sleep(50 * time.Microsecond)
		}
	}
}

// Progress is the share of the running op's pieces that were begun.
func (b *Backend) Progress() float64 {
	j := b.job.Load()
	if j == nil || j.pieces == 0 {
		return 0
	}
	return min(float64(j.begun.Load())/float64(j.pieces), 1)
}

// Interrupt makes the op that runs now fail. A block of work that has begun is finished first.
func (b *Backend) Interrupt() {
	if b.busy.Load() {
		b.stop.Store(true)
	}
}

// blocks is the number of blocks of size that cover n.
func blocks(n, size int) int { return (n + size - 1) / size }

// rows counts the rows of a view over all heads; row finds one of them.
func rows(v cudaops.View) int { return v.H * v.S }

// row is row s of head h.
func row(v cudaops.View, h, s int) []float32 {
	at := v.Offset + h*v.HeadStride + s*v.RowStride
	return data(v.Mem)[at : at+v.D : at+v.D]
}

// eachRow calls work for every row (h, s) of views of v's shape, in blocks of about 16k elements.
func (b *Backend) eachRow(v cudaops.View, work func(h, s int)) error {
	size := max(1, 16384/v.D)
	n := rows(v)
	return b.parallel(blocks(n, size), func(i int) {
		for r := i * size; r < min((i+1)*size, n); r++ {
			work(r/v.S, r%v.S)
		}
	})
}

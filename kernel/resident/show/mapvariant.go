package show

import (
	"math"
	"runtime"
	"sync"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/plan"
	"github.com/attnb/attnb/kernel/resident/chain"
	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/viz"
)

// A map of a variant of attention: the device makes scores a chunk of rows at a time, of the columns that these rows see; what comes between them
// and the weights is done here, in float64, and pooled. So no matrix is made, a window costs what it shows, and everything a variant
// may do is one definition.

// changed is what a variant does to the scores of a map.
type changed struct {
	softcap float64
	slopes  []float64       // one a head; nil: none
	bias    *cudaops.Buffer // [heads or 1, s or 1, t]; nil: none
	sinks   []float32       // one a head; nil: none
	// sums are the logs of each row's sum, by head, NaN where they are not known yet.
	sums map[int][]float64
}

// changedBy is what parameters and extras of q and k ask for, and which cells they allow; nil: nothing.
func changedBy(c *store.Client, j *chain.Job, v cudaops.Variant, allowed store.Allowed, m cudaops.Mask, heads, s, t int) (*changed, error) {
	if m.Plain() && v.Plain() {
		return nil, nil
	}
	if err := fitting(v, m, heads, s, t); err != nil {
		return nil, err
	}
	out := &changed{softcap: v.Softcap, slopes: v.Slopes, bias: v.Bias, sums: map[int][]float64{}}
	if v.Sinks == nil {
		return out, nil
	}
	var err error
	out.sinks, err = c.Device.Download(v.Sinks)
	return out, err
}

// fitting refuses a variant that does not fit scores [heads, s, t].
func fitting(v cudaops.Variant, m cudaops.Mask, heads, s, t int) error {
	if err := v.Check(m, heads, t); err != nil {
		return bad(nil, "%v", err)
	}
	for _, x := range []struct {
		name string
		b    *cudaops.Buffer
	}{{"bias", v.Bias}, {"allowed", v.Allowed}} {
		if x.b == nil {
			continue
		}
		if h, rows, cols := x.b.Shape(); cols != t || rows != 1 && rows != s || h != 1 && h != heads {
			return bad([]string{x.name}, "must fit scores %v: as many columns, and as many rows and heads or 1", [3]int{heads, s, t})
		}
	}
	if v.Sinks == nil {
		return nil
	}
	if h, rows, n := v.Sinks.Shape(); h != 1 || rows != 1 || n != heads {
		return bad([]string{"sinks"}, "must be [1 1 %d], one a head", heads)
	}
	return nil
}

// changedScore is what a score becomes before the softmax: softcap, bias, and ALiBi away columns from the row's own.
func changedScore(s, softcap, bias, slope float64, away int) float64 {
	if softcap != 0 {
		s = softcap * math.Tanh(s/softcap)
	}
	s += bias
	if slope != 0 {
		s -= slope * math.Abs(float64(away))
	}
	return s
}

// part is what a buffer whose one head or row serves all holds for rows and columns of a head.
func part(c *store.Client, j *chain.Job, b *cudaops.Buffer, head int, rows, cols viz.Span) (values []float32, stride int, err error) {
	h, s, _ := b.Shape()
	one, err := j.Keep(b.Head(min(head, h-1)))
	if err == nil && s > 1 {
		stride = cols.To - cols.From
		one, err = j.Keep(one.Rows(rows.From, rows.To))
	}
	if err == nil {
		one, err = j.Keep(one.Columns(cols.From, cols.To))
	}
	if err != nil {
		return nil, 0, err
	}
	values, err = c.Device.Download(one)
	return values, stride, err
}

// ofVariant is a tile of queries and keys under a mask or variant that devices do not pool.
func (m *attentionMap) ofVariant(c *store.Client, v mapView, head int, from, to float64) ([]float32, error) {
	n, t := v.rows.To-v.rows.From, v.cols.To-v.cols.From
	out, pool := make([]float32, v.h*v.w), newPools(v.reduce, v.w, t)
	weighed := v.quantity == store.Probabilities
	sums := m.changed.sums[head]
	if sums == nil {
		sums = make([]float64, m.s)
		for i := range sums {
			sums[i] = math.NaN()
		}
		m.changed.sums[head] = sums
	}
	whole := m.sight
	for at := 0; at < n; {
		if err := c.Ctx.Err(); err != nil {
			return nil, err
		}
		last := min(at+max(1, chunk/m.t), n)
		rows := viz.Span{From: v.rows.From + at, To: v.rows.From + last}
		cols := viz.Span{From: m.t}
		for row := rows.From; row < rows.To; row++ { // what the chunk sees
			if lo, hi := whole.interval(row); lo < hi {
				cols.From, cols.To = min(cols.From, lo), max(cols.To, hi)
			}
		}
		if known := !anyNaN(sums[rows.From:rows.To]); known || !weighed {
			cols.From, cols.To = max(cols.From, v.cols.From), min(cols.To, v.cols.To)
		}
		var lines [][]float64
		if cols.From < cols.To {
			var err error
			if lines, err = m.lines(c, head, rows, cols, weighed, sums); err != nil {
				return nil, err
			}
		}
		for ; at < last; at++ {
			if lines != nil {
				lo, hi := v.look.interval(at)
				line := lines[v.rows.From+at-rows.From]
				sees := v.look.cells(head, at)
				for col := lo; col < hi; col++ {
					if sees == nil || sees(col) {
						pool.take(plan.Pool(col, t, v.w), float64(float32(line[v.cols.From+col-cols.From])), 1)
					}
				}
			}
			if i := plan.Pool(at, n, v.h); plan.Edge(i+1, n, v.h) == at+1 {
				pool.finish(out[i*v.w:][:v.w])
			}
		}
		store.ProgressOf(c.Ctx).Advance(from + (to-from)*float64(at)/float64(n))
	}
	return out, nil
}

func anyNaN(x []float64) bool {
	for _, v := range x {
		if v != v {
			return true
		}
	}
	return false
}

// lines are the scores or the probabilities of some rows of a head, in some of the columns. Where a row's sum is not known the columns are all
// that it sees, and it is noted.
func (m *attentionMap) lines(c *store.Client, head int, rows, cols viz.Span, weighed bool, sums []float64) ([][]float64, error) {
	j := chain.NewJob(c.Device, 0)
	defer j.Done()
	of := func(b *cudaops.Buffer, h int, span viz.Span) (*cudaops.Buffer, error) {
		one, err := j.Keep(b.Head(h))
		if err != nil {
			return nil, err
		}
		return j.Keep(one.Rows(span.From, span.To))
	}
	q, err := of(m.q, head, rows)
	if err != nil {
		return nil, err
	}
	k, err := of(m.k, head/m.group, cols)
	if err != nil {
		return nil, err
	}
	scored, err := j.Keep(c.Device.Scores(q, k, m.scale))
	if err != nil {
		return nil, err
	}
	scores, err := c.Device.Download(scored)
	if err != nil {
		return nil, err
	}
	var bias []float32
	stride := 0
	if m.changed.bias != nil && weighed {
		if bias, stride, err = part(c, j, m.changed.bias, head, rows, cols); err != nil {
			return nil, err
		}
	}
	n, w := rows.To-rows.From, cols.To-cols.From
	out := make([][]float64, n)
	next := make(chan int, n)
	for i := range n {
		next <- i
	}
	close(next)
	var workers sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			for i := range next {
				line := make([]float64, w)
				for col := range line {
					line[col] = float64(scores[i*w+col])
				}
				if weighed {
					row := rows.From + i
					if bias == nil {
						m.weigh(line, head, row, cols, nil, &sums[row])
					} else {
						m.weigh(line, head, row, cols, bias[i*stride:][:w], &sums[row])
					}
				}
				out[i] = line
			}
		})
	}
	workers.Wait()
	return out, nil
}

// weigh makes probabilities of the scores of a row's columns. Those that it does not see come to nothing that is used.
func (m *attentionMap) weigh(line []float64, head, row int, cols viz.Span, bias []float32, sum *float64) {
	c := m.changed
	own := row + m.mask.Diagonal
	slope := 0.0
	if c.slopes != nil {
		slope = c.slopes[head]
	}
	for i, s := range line {
		x := 0.0
		if bias != nil {
			x = float64(bias[i])
		}
		line[i] = changedScore(s, c.softcap, x, slope, cols.From+i-own)
	}
	if *sum != *sum {
		if *sum = m.normalize(line, head, row, cols); !math.IsInf(*sum, 0) {
			return
		}
	}
	for i := range line {
		line[i] = math.Exp(line[i] - *sum)
	}
}

// normalize makes probabilities of what a row sees of a line, which is all that it sees, and returns the log of the sum of its exponentials, the
// sink's among them. Where that is infinite the line is left as it is.
func (m *attentionMap) normalize(line []float64, head, row int, cols viz.Span) float64 {
	most, total := math.Inf(-1), 0.0
	if m.changed.sinks != nil {
		most = float64(m.changed.sinks[head])
	}
	look := m.sight.within(viz.Span{From: row, To: row + 1}, cols)
	lo, hi := look.interval(0)
	sees := look.cells(head, 0)
	for col := lo; col < hi; col++ {
		if sees == nil || sees(col) {
			most = math.Max(most, line[col]) // NaN where one is
		}
	}
	if math.IsInf(most, 0) {
		return most
	}
	if m.changed.sinks != nil {
		total = math.Exp(float64(m.changed.sinks[head]) - most)
	}
	for col := lo; col < hi; col++ {
		if sees == nil || sees(col) {
			line[col] = math.Exp(line[col] - most)
			total += line[col]
		}
	}
	for col := lo; col < hi; col++ {
		line[col] /= total
	}
	return most + math.Log(total)
}

package resident

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/host"
	"github.com/attnb/attnb/kernel/resident/chain"
	"github.com/attnb/attnb/kernel/wire"
)

// ask asks a question about tensors, given as role and tensor.
func (c caller) ask(topic string, p wire.Params, settings []wire.Fact, roles []string, xs ...wire.Tensor) wire.Answer {
	c.t.Helper()
	a := c.do(wire.Request{Kind: wire.KindAsk, IDs: ids(xs), Params: p, Question: &wire.Question{Topic: topic, Roles: roles, Settings: settings}})
	if a.Finding == nil {
		c.t.Fatalf("%s: no finding", topic)
	}
	c.pictured(topic, a)
	return a
}

// pictured says that an answer has a picture and a description of it.
func (c caller) pictured(topic string, a wire.Answer) {
	c.t.Helper()
	d, err := c.Display(a.DisplayID)
	if err != nil || !bytes.HasPrefix(d.Parts[0].Data, []byte("\x89PNG")) || len(d.Parts) < 2 || len(d.Parts[1].Data) < 40 {
		c.t.Errorf("%s: picture: %v", topic, err)
		return
	}
	c.keep(d)
}

func (c caller) audit(x wire.Tensor, given ...wire.Tensor) wire.Answer {
	c.t.Helper()
	roles := []string{"out"}
	for i := range given {
		roles = append(roles, [2]string{"stage", "expected"}[i%2])
	}
	return c.ask("audit", wire.Params{}, nil, roles, append([]wire.Tensor{x}, given...)...)
}

// steps is an attention step by step, from fused rows to the projected result.
type steps struct{ q, k, v, rq, rk, s, p, ctx, merged, out, end wire.Tensor }

func (c caller) stepByStep(heads, seq, dim int) (x steps) {
	hidden := heads * dim
	rows := c.run1(wire.OpLinear, wire.Params{}, c.random(1, fused, seq, 40), c.random(2, []string{"out", "in"}, 3*hidden, 40))
	split := c.run(wire.OpSplit, wire.Params{Layout: wire.LayoutNeoX, Heads: heads}, rows)
	x.q, x.k, x.v = split[0], split[1], split[2]
	r := wire.Params{Rotary: dim}
	x.rq, x.rk = c.run1(wire.OpRoPE, r, x.q), c.run1(wire.OpRoPE, r, x.k)
	x.s = c.run1(wire.OpScores, wire.Params{Mask: wire.MaskCausal, Scale: 0.02}, x.rq, x.rk)
	x.p = c.run1(wire.OpSoftmax, wire.Params{}, x.s)
	x.ctx = c.run1(wire.OpContext, wire.Params{}, x.p, x.v)
	x.merged = c.run1(wire.OpMerge, wire.Params{}, x.ctx)
	x.out = c.run1(wire.OpLinear, wire.Params{}, x.merged, c.random(4, []string{"out", "in"}, 40, hidden))
	x.end = c.run1(wire.OpAdd, wire.Params{}, x.out, c.random(1, fused, seq, 40))
	return x
}

// The first stage that departs is named, whichever it is.
func TestAudit(t *testing.T) {
	for _, f := range []struct {
		name, first string
		b           *faulty
	}{
		{"right", "", &faulty{}},
		{"offset", "RoPE", &faulty{rope: func(r cudaops.RoPE) cudaops.RoPE { r.Offset++; return r }}},
		{"scale", "Scores", &faulty{scale: 1 + 1e-3}},
		{"mask", "Softmax", &faulty{softmax: func(m cudaops.Mask) cudaops.Mask { m.Diagonal++; return m }}},
	} {
		t.Run(f.name, func(t *testing.T) {
			f.b.Backend = host.New(host.Options{})
			p := start(t, f.b)
			c := p.dial()
			defer c.Close()
			x := c.stepByStep(3, 17, 8)
			c.name(x.end, "end")
			a := c.audit(x.end)
			if a.Finding.Pass != (f.first == "") {
				t.Errorf("%s", a.Text)
			}
			if f.first != "" && (len(a.Finding.Faults) == 0 || !strings.Contains(a.Finding.Sentence, "the first stage to depart is "+f.first+":")) {
				t.Errorf("%s", a.Text)
			}
			if f.name == "mask" && (a.Finding.Faults[0].Kind != "mask" || !strings.Contains(a.Text, "48 hidden cells have weight, 0 visible ones have none")) {
				t.Errorf("%+v\n%s", a.Finding.Faults, a.Text)
			}
			stages := 0
			for _, fact := range a.Finding.Facts {
				if fact.Name == "stage" {
					stages++
				}
			}
			if stages != 12 {
				t.Errorf("%d stages\n%s", stages, a.Text)
			}
			if f.name == "right" {
				t.Logf("%s", a.Text)
			}
			// What is gone is computed again.
			c.do(wire.Request{Kind: wire.KindFree, IDs: ids([]wire.Tensor{x.p, x.rk, x.ctx})})
			if b := c.audit(x.end); b.Finding.Pass != a.Finding.Pass || !strings.Contains(b.Text, "Softmax *") || b.Finding.Sentence != a.Finding.Sentence {
				t.Errorf("%s", b.Text)
			}
		})
	}
}

// Tensors from elsewhere are audited by this kernel's chain: the stage of theirs that departs is named, and what it only passed on is not.
func TestAuditTheirs(t *testing.T) {
	p := onHost(t)
	c := p.dial()
	defer c.Close()
	x := c.stepByStep(3, 17, 8)
	elsewhere := func(y wire.Tensor) wire.Tensor {
		a, err := c.Upload(wire.Request{Kind: wire.KindUpload, Shape: y.Shape, Axes: y.Axes}, c.download(y))
		if err != nil {
			t.Fatal(err)
		}
		return a.Tensors[0]
	}
	k, probs, ctx := elsewhere(x.rk), elsewhere(x.p), c.run1(wire.OpSwap, wire.Params{}, elsewhere(x.ctx))
	a := c.audit(x.end, x.rk, k, x.p, probs, x.ctx, ctx)
	if !a.Finding.Pass {
		t.Errorf("%s", a.Text)
	}
	// Their k is one position too far; their probabilities follow from it, and so does their context.
	wrong := c.run1(wire.OpRoPE, wire.Params{Rotary: 8, Offset: 1}, x.k)
	p2 := c.run1(wire.OpSoftmax, wire.Params{}, c.run1(wire.OpScores, wire.Params{Mask: wire.MaskCausal, Scale: 0.02}, x.rq, wrong))
	ctx2 := c.run1(wire.OpContext, wire.Params{}, p2, x.v)
	a = c.audit(x.end, x.rk, elsewhere(wrong), x.p, elsewhere(p2), x.ctx, elsewhere(ctx2))
	if a.Finding.Pass || len(a.Finding.Faults) != 1 || a.Finding.Faults[0].Kind != "rope" {
		t.Errorf("%+v\n%s", a.Finding, a.Text)
	}
	for _, refused := range []struct {
		given []wire.Tensor
		want  string
	}{
		{[]wire.Tensor{k, k}, `Audit: Stage: FromSlice [heads 3, seq 17, dim 8] is no stage of what is audited`},
		{[]wire.Tensor{x.rk, x.p}, `Audit: shapes differ: the stage is [heads 3, seq 17, dim 8], what is expected of it [heads 3, query 17, key 17]`},
	} {
		_, err := c.Do(wire.Request{Kind: wire.KindAsk, IDs: ids(append([]wire.Tensor{x.end}, refused.given...)),
			Question: &wire.Question{Topic: "audit", Roles: []string{"out", "stage", "expected"}}})
		if err == nil || err.Error() != refused.want {
			t.Errorf("%v, want %s", err, refused.want)
		}
	}
}

// A chain beyond the budget is audited in a sample of its rows.
func TestAuditSampled(t *testing.T) {
	for _, wrong := range []bool{false, true} {
		b := &faulty{Backend: host.New(host.Options{})}
		if wrong {
			b.scale = 1.01
		}
		p := tight(t, b, chain.Budget{Cells: 1 << 12})
		c := p.dial()
		x := c.stepByStep(3, 40, 8)
		a := c.audit(x.end)
		if a.Finding.Pass == wrong || !strings.Contains(a.Text, "a sample of the rows of each stage") || wrong && !strings.Contains(a.Text, "depart is Scores") {
			t.Errorf("%s", a.Text)
		}
		c.Close()
	}
}

// An audit tells how far it is, and ends with its client.
func TestAuditProgress(t *testing.T) {
	p := onHost(t)
	c, watcher := p.dial(), p.dial()
	defer watcher.Close()
	x := c.stepByStep(6, 300, 32)
	gone := make(chan bool)
	go func() {
		defer close(gone)
		_, _ = c.Do(wire.Request{Kind: wire.KindAsk, IDs: []int{x.end.ID}, Question: &wire.Question{Topic: "audit", Roles: []string{"out"}}})
	}()
	seen := false
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		s, err := watcher.Status()
		if err != nil {
			t.Fatal(err)
		}
		if s.Running == "Audit" && s.Done > 0 && s.Done < 1 {
			seen = true
			c.Close()
			break
		}
	}
	if !seen {
		t.Error("no progress was seen")
	}
	<-gone
	p.settle(0)
}

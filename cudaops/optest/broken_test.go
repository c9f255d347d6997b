package optest

import (
	"math"
	"testing"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/host"
	"github.com/attnb/attnb/cudaops/plan"
)

// butLast shortens a view by its last row.
func butLast(v cudaops.View) cudaops.View {
	if v.S > 1 {
		v.S--
	}
	return v
}

// head is one head of a view.
func head(v cudaops.View, h int) cudaops.View {
	v.Offset += h * v.HeadStride
	v.H = 1
	return v
}

// poke writes x to the last element of v.
func poke(b cudaops.Backend, v cudaops.View, x float32) error {
	at := v.Offset + (v.H-1)*v.HeadStride + (v.S-1)*v.RowStride + v.D - 1
	return b.Upload(v.Mem, at, []float32{x})
}

// rounded runs op on a copy of src of which each element is rounded to bits of mantissa.
func rounded(b cudaops.Backend, src cudaops.View, bits int, op func(src cudaops.View) error) error {
	x := make([]float32, src.Mem.Len())
	if err := b.Download(x, src.Mem, 0); err != nil {
		return err
	}
	for i := range x {
		x[i] = math.Float32frombits(math.Float32bits(x[i]) &^ (1<<(23-bits) - 1))
	}
	m, err := b.Alloc(len(x))
	if err != nil {
		return err
	}
	defer b.Free(m)
	if err := b.Upload(m, 0, x); err != nil {
		return err
	}
	src.Mem = m
	return op(src)
}

var faults = map[string]broken{
	"copy leaves out the last plan": {copy: func(b cudaops.Backend, dst, src cudaops.Memory, c []plan.PitchedCopy) error {
		return b.Copy(dst, src, c[:max(1, len(c)-1)])
	}},
	"copy swaps its pitches": {copy: func(b cudaops.Backend, dst, src cudaops.Memory, c []plan.PitchedCopy) error {
		swapped := make([]plan.PitchedCopy, len(c))
		for i := range c {
			swapped[i] = c[i]
			swapped[i].SrcPitch = min(c[i].SrcPitch, c[i].DstPitch)
			swapped[i].DstPitch = swapped[i].SrcPitch
		}
		return b.Copy(dst, src, swapped)
	}},
	"gather forgets the last row": {gather: func(b cudaops.Backend, dst, src []cudaops.View) error {
		for i := range dst {
			if err := b.Gather([]cudaops.View{butLast(dst[i])}, []cudaops.View{butLast(src[i])}); err != nil {
				return err
			}
		}
		return nil
	}},
	"gather runs the first pair only": {gather: func(b cudaops.Backend, dst, src []cudaops.View) error {
		return b.Gather(dst[:1], src[:1])
	}},
	"rope is off by one position": {rope: func(b cudaops.Backend, dst, src cudaops.View, r cudaops.RoPE) error {
		r.Offset++
		return b.RoPE(dst, src, r)
	}},
	"rope ignores positions": {rope: func(b cudaops.Backend, dst, src cudaops.View, r cudaops.RoPE) error {
		r.Positions = nil
		return b.RoPE(dst, src, r)
	}},
	"rope pairs the other way": {rope: func(b cudaops.Backend, dst, src cudaops.View, r cudaops.RoPE) error {
		r.Convention = 1 - r.Convention
		return b.RoPE(dst, src, r)
	}},
	"rope divides by the head dim": {rope: func(b cudaops.Backend, dst, src cudaops.View, r cudaops.RoPE) error {
		freq := make([]float64, len(r.InvFreq))
		for i, f := range r.InvFreq {
			freq[i] = math.Pow(f, float64(r.Rotary)/float64(src.D))
		}
		r.InvFreq = freq
		return b.RoPE(dst, src, r)
	}},
	"rope takes f32 angles for f64": {rope: func(b cudaops.Backend, dst, src cudaops.View, r cudaops.RoPE) error {
		r.Angle = cudaops.AngleFloat32
		return b.RoPE(dst, src, r)
	}},
	"rope ignores the magnitude": {rope: func(b cudaops.Backend, dst, src cudaops.View, r cudaops.RoPE) error {
		r.Magnitude = 1
		return b.RoPE(dst, src, r)
	}},
	"softmax masks top-left": {softmax: func(b cudaops.Backend, dst, src cudaops.View, m cudaops.Mask) error {
		m.Diagonal = 0
		return b.Softmax(dst, src, m)
	}},
	"softmax hides one column more": {softmax: func(b cudaops.Backend, dst, src cudaops.View, m cudaops.Mask) error {
		m.Diagonal--
		return b.Softmax(dst, src, m)
	}},
	"softmax leaves hidden columns": {softmax: func(b cudaops.Backend, dst, src cudaops.View, m cudaops.Mask) error {
		if m.Visible(src.S-1, src.D) == 0 {
			return nil
		}
		return b.Softmax(dst, src, m)
	}},
	"softmax ends in NaN": {softmax: func(b cudaops.Backend, dst, src cudaops.View, m cudaops.Mask) error {
		if err := b.Softmax(dst, src, m); err != nil {
			return err
		}
		return poke(b, dst, float32(math.NaN()))
	}},
	"softmax writes to its input": {softmax: func(b cudaops.Backend, dst, src cudaops.View, m cudaops.Mask) error {
		if err := b.Softmax(dst, src, m); err != nil {
			return err
		}
		return poke(b, src, 7)
	}},
	"add adds the first twice": {add: func(b cudaops.Backend, dst, x, _ cudaops.View) error { return b.Add(dst, x, x) }},
	"scores forget the scale": {scores: func(b cudaops.Backend, dst, q, k cudaops.View, _ float32) error {
		return b.Scores(dst, q, k, 1)
	}},
	"scores tile the key heads": {scores: func(b cudaops.Backend, dst, q, k cudaops.View, scale float32) error {
		for h := range q.H {
			if err := b.Scores(head(dst, h), head(q, h), head(k, h%k.H), scale); err != nil {
				return err
			}
		}
		return nil
	}},
	"scores take 10 bits of mantissa": {scores: func(b cudaops.Backend, dst, q, k cudaops.View, scale float32) error {
		return rounded(b, q, 10, func(q cudaops.View) error { return b.Scores(dst, q, k, scale) })
	}},
	"context spreads hidden values": {context: func(b cudaops.Backend, dst, p, v cudaops.View) error {
		turned, err := b.Alloc(v.H * v.S * v.D) // p v as the product of p with the rows of v turned: nothing is left out
		if err != nil {
			return err
		}
		defer b.Free(turned)
		columns := cudaops.View{Mem: turned, H: v.H, S: v.D, D: v.S, HeadStride: v.S * v.D, RowStride: v.S}
		x := make([]float32, v.Mem.Len())
		if err := b.Download(x, v.Mem, 0); err != nil {
			return err
		}
		for h := range v.H {
			for s := range v.S {
				for i := range v.D {
					at := h*columns.HeadStride + i*columns.RowStride + s
					if err := b.Upload(turned, at, x[v.Offset+h*v.HeadStride+s*v.RowStride+i:][:1]); err != nil {
						return err
					}
				}
			}
		}
		return b.Scores(dst, p, columns, 1)
	}},
	"context hides a NaN that is seen": {context: func(b cudaops.Backend, dst, p, v cudaops.View) error {
		if err := b.Context(dst, p, v); err != nil {
			return err
		}
		x := make([]float32, dst.Mem.Len())
		if err := b.Download(x, dst.Mem, 0); err != nil {
			return err
		}
		for i := range x {
			if x[i] != x[i] {
				x[i] = 0
			}
		}
		return b.Upload(dst.Mem, 0, x)
	}},
	"context tiles the value heads": {context: func(b cudaops.Backend, dst, p, v cudaops.View) error {
		for h := range p.H {
			if err := b.Context(head(dst, h), head(p, h), head(v, h%v.H)); err != nil {
				return err
			}
		}
		return nil
	}},
	"context misses the last key": {context: func(b cudaops.Backend, dst, p, v cudaops.View) error {
		if p.D > 1 {
			p.D, v.S = p.D-1, v.S-1
		}
		return b.Context(dst, p, v)
	}},
	"context reads weights as if they touched": {context: func(b cudaops.Backend, dst, p, v cudaops.View) error {
		p.RowStride = p.D
		return b.Context(dst, p, v)
	}},
	"context takes 10 bits of mantissa": {context: func(b cudaops.Backend, dst, p, v cudaops.View) error {
		return rounded(b, v, 10, func(v cudaops.View) error { return b.Context(dst, p, v) })
	}},
	"prefill masks top-left": {prefill: func(b cudaops.Backend, dst, lse, q, k, v cudaops.View, scale float32, m cudaops.Mask) error {
		m.Diagonal = 0
		return b.Prefill(dst, lse, q, k, v, scale, m)
	}},
	"prefill tiles the key heads": {prefill: func(b cudaops.Backend, dst, lse, q, k, v cudaops.View, scale float32, m cudaops.Mask) error {
		for h := range q.H {
			l := lse
			l.Offset += h * lse.RowStride
			l.S = 1
			if err := b.Prefill(head(dst, h), l, head(q, h), head(k, h%k.H), head(v, h%k.H), scale, m); err != nil {
				return err
			}
		}
		return nil
	}},
	"prefill lets hidden values through": {prefill: func(b cudaops.Backend, dst, lse, q, k, v cudaops.View, scale float32, m cudaops.Mask) error {
		if err := b.Prefill(dst, lse, q, k, v, scale, m); err != nil {
			return err
		}
		last := make([]float32, 1) // 0 * v of the last key, as an unguarded product with a weight of 0 does
		at := v.Offset + (v.H-1)*v.HeadStride + (v.S-1)*v.RowStride + (v.H+v.S-2)%v.D
		if err := b.Download(last, v.Mem, at); err != nil || last[0] == last[0] {
			return err
		}
		return poke(b, dst, float32(math.NaN()))
	}},
	"prefill takes 10 bits of mantissa": {prefill: func(b cudaops.Backend, dst, lse, q, k, v cudaops.View, scale float32, m cudaops.Mask) error {
		return rounded(b, v, 10, func(v cudaops.View) error { return b.Prefill(dst, lse, q, k, v, scale, m) })
	}},
	"prefill gives LSE to base 2": {prefill: func(b cudaops.Backend, dst, lse, q, k, v cudaops.View, scale float32, m cudaops.Mask) error {
		if err := b.Prefill(dst, lse, q, k, v, scale, m); err != nil || lse.Mem == nil {
			return err
		}
		x := make([]float32, lse.Mem.Len())
		if err := b.Download(x, lse.Mem, 0); err != nil {
			return err
		}
		for i := range x {
			x[i] *= math.Log2E
		}
		return b.Upload(lse.Mem, 0, x)
	}},
	"prefill reads keys without their head stride": {prefill: func(b cudaops.Backend, dst, lse, q, k, v cudaops.View, scale float32, m cudaops.Mask) error {
		k.HeadStride = min(k.HeadStride, k.S*k.D)
		return b.Prefill(dst, lse, q, k, v, scale, m)
	}},
	"decode misses the newest key": {decode: func(b cudaops.Backend, dst, q, k, v cudaops.View, scale float32) error {
		return b.Decode(dst, q, butLast(k), butLast(v), scale)
	}},
	"decode ignores the offset of a view": {decode: func(b cudaops.Backend, dst, q, k, v cudaops.View, scale float32) error {
		k.Offset = 0
		return b.Decode(dst, q, k, v, scale)
	}},
	"decode tiles the key heads": {decode: func(b cudaops.Backend, dst, q, k, v cudaops.View, scale float32) error {
		for h := range q.H {
			if err := b.Decode(head(dst, h), head(q, h), head(k, h%k.H), head(v, h%k.H), scale); err != nil {
				return err
			}
		}
		return nil
	}},
	"linear forgets the bias": {linear: func(b cudaops.Backend, dst, x, w, _ cudaops.View) error {
		return b.Linear(dst, x, w, cudaops.View{})
	}},
}

// failing are the small cases and golden layers that a device fails.
func failing(d *cudaops.Device) []string {
	d = poisoned(d)
	var names []string
	for _, c := range cases() {
		if c.size() > smallCase {
			continue
		}
		for _, p := range placements {
			if c.packed && p.scattered {
				continue
			}
			if c.check(d, p) != nil {
				names = append(names, c.name)
				break
			}
		}
	}
	for _, p := range append(goldens(), properties...) {
		if p.check(d) != nil {
			names = append(names, p.name)
		}
	}
	return names
}

func TestSuiteFailsBrokenBackends(t *testing.T) {
	if names := failing(cudaops.NewDevice(host.New(host.Options{}))); len(names) > 0 {
		t.Fatalf("the sound backend fails %v", names)
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			fault.Backend = host.New(host.Options{})
			names := failing(cudaops.NewDevice(fault))
			if len(names) == 0 {
				t.Error("passes the suite")
			}
			t.Logf("fails %d: %v", len(names), names[:min(3, len(names))])
		})
	}
}

// unsteady changes the last bit of every second result.
type unsteady struct {
	cudaops.Backend
	calls int
}

func (u *unsteady) Add(dst, x, y cudaops.View) error {
	if err := u.Backend.Add(dst, x, y); err != nil {
		return err
	}
	if u.calls++; u.calls%2 == 0 {
		return nil
	}
	last := make([]float32, 1)
	at := dst.Offset + (dst.H-1)*dst.HeadStride + (dst.S-1)*dst.RowStride + dst.D - 1
	if err := u.Download(last, dst.Mem, at); err != nil {
		return err
	}
	return poke(u.Backend, dst, math.Nextafter32(last[0], 0))
}

func TestSuiteFailsUnsteadyBackend(t *testing.T) {
	if len(failing(cudaops.NewDevice(&unsteady{Backend: host.New(host.Options{})}))) == 0 {
		t.Error("passes the suite")
	}
}

// keeper never gives memory back.
type keeper struct{ cudaops.Backend }

func (keeper) Free(cudaops.Memory) {}

func TestSuiteFailsLeak(t *testing.T) {
	d := cudaops.NewDevice(keeper{host.New(host.Options{})})
	for _, c := range cases()[:3] {
		if c.checkFailures(d) == nil {
			t.Errorf("%s passes", c.name)
		}
	}
}

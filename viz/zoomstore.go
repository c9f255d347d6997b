package viz

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"math"
)

// store puts sheets into a view, as far as there is room: the exact values of a small matrix, or the cells of the picture and what is
// finer.
func (z Zoom) store(d *drawing, v *zoomView, shown onPage, room int) {
	whole := make([]zoomSheet, len(z.Matrices))
	need := 0
	for i, m := range z.Matrices {
		part := Part{m, z.rowSpan(), z.colSpan()}
		if part.pooled() || need+4*len(m.Values)/2 > room { // they hardly halve
			need = room + 1
			break
		}
		whole[i] = part.floats(z.Kind)
		need += whole[i].size()
	}
	if need <= room {
		for i := range v.Heads {
			v.Heads[i].Sheets = append(v.Heads[i].Sheets, whole[i])
		}
		return
	}
	l := d.layout
	for i := range v.Heads {
		at := l.panels[i].Min
		s := Part{z.Matrices[i], z.rowSpan(), z.colSpan()}.sheet("picture")
		s.X, s.Y, s.DX, s.DY = at.X/shown.shrunk, at.Y/shown.shrunk, l.cell.X/shown.shrunk, l.cell.Y/shown.shrunk
		v.Heads[i].Sheets = append(v.Heads[i].Sheets, s)
		room -= s.size()
	}
	z.storeFiner(v, room)
}

// storeFiner puts in what is finer, of all matrices before the next level: single cells first, which are small and what one zooms to.
func (z Zoom) storeFiner(v *zoomView, room int) {
	levels := 0
	for _, finer := range z.Finer {
		levels = max(levels, len(finer))
	}
	stored := make([][]zoomSheet, len(z.Finer)*levels) // of head and level
	for _, small := range []bool{true, false} {
		for level := range levels {
			for i, finer := range z.Finer {
				if level >= len(finer) || (len(finer[level].Values) <= maxCells) != small {
					continue
				}
				if s := finer[level].stored(z.Kind); s.size() <= room {
					stored[i*levels+level] = []zoomSheet{s}
					room -= s.size()
				}
			}
		}
	}
	for at, s := range stored {
		head := &v.Heads[at/levels]
		head.Sheets = append(head.Sheets, s...)
	}
}

// size is what a sheet takes in a fragment.
func (s zoomSheet) size() int { return len(s.Data) + 160 }

func (p Part) heatmap(k Kind) Heatmap {
	return Heatmap{Kind: k, Matrices: []Matrix{p.Matrix}, RowSpan: p.RowSpan, ColSpan: p.ColSpan}
}

func (p Part) pooled() bool { return p.heatmap(Signed).pooled() }

func (p Part) sheet(form string) zoomSheet {
	h := p.heatmap(Signed)
	r, c := h.rowSpan(), h.colSpan()
	return zoomSheet{Rows: [2]int{r.From, r.To}, Cols: [2]int{c.From, c.To}, H: p.Matrix.Rows, W: p.Matrix.Cols, Form: form}
}

// stored is a part as it is stored: a large one has its exact values only as palette entries have them.
func (p Part) stored(k Kind) zoomSheet {
	if len(p.Values) <= maxCells {
		return p.floats(k)
	}
	return p.codes(k)
}

func (p Part) floats(k Kind) zoomSheet {
	var s summary
	cells := p.heatmap(k).pool(0, 1, 1, &s)
	raw := make([]byte, 4*len(cells.value), 4*len(cells.value)+len(cells.value)/8+1)
	bits := make([]byte, ceilDiv(len(cells.value), 8))
	for i, v := range cells.value {
		if cells.class[i] == masked {
			bits[i/8] |= 1 << (i % 8)
			continue
		}
		// as it is: pool keeps the class of what is not finite, not its sign of NaN
		binary.LittleEndian.PutUint32(raw[4*i:], math.Float32bits(v))
	}
	if s.count[masked] > 0 {
		raw = append(raw, bits...)
	}
	out := p.sheet("f32")
	out.Data = base64.StdEncoding.EncodeToString(zipped(raw))
	return out
}

// codes have a scale of their own: a mean of few cells may be larger than any of many.
func (p Part) codes(k Kind) zoomSheet {
	var s summary
	cells := p.heatmap(k).pool(0, 1, 1, &s)
	sc := k.scale(s)
	codes := make([]byte, len(cells.value))
	for i, c := range cells.class {
		codes[i] = indexOf[c]
		if c == finite {
			codes[i] = uint8(step(sc.norm(float64(cells.value[i])), steps))
		}
	}
	out := p.sheet("codes")
	own := sc.page()
	out.Data, out.Scale = base64.StdEncoding.EncodeToString(zipped(codes)), &own
	return out
}

// zipped cannot fail: it writes to memory.
func zipped(raw []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(raw)
	_ = w.Close()
	return b.Bytes()
}

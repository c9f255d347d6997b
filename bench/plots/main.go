// Command plots draws what bench/gpu -scaling has stored: for each op its time against size, PyTorch's, and the floor that the hardware sets; and what
// tests/soak.py --store has: memory, descriptors and files of a kernel over time.
//
//	go -C bench/plots run . ../results/h200-...-scaling.json
//	go -C bench/plots run . ../results/soak.json
//
// The picture goes beside the JSON file, as PNG.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// row is what is read of a row (bench/gpu).
type row struct {
	Op      string  `json:"op"`
	S       int     `json:"S"`
	T       int     `json:"T"`
	MS      float64 `json:"ms"`
	PeerMS  float64 `json:"peer_ms"`
	FloorMS float64 `json:"floor_ms"`
}

// panel is one op: what its sizes count.
type panel struct {
	op, title, axis string
	size            func(row) int
}

func queries(r row) int { return r.S }
func keys(r row) int    { return r.T }

var panels = []panel{
	{"prefill", "prefill, causal, 8 heads of 128", "queries and keys", queries},
	{"decode", "decode, 8 heads of 128", "keys", keys},
	{"rope", "RoPE, 32 heads of 128", "rows", queries},
	{"gather", "q, k and v out of fused rows, 32 heads of 128", "rows", queries},
	{"softmax", "softmax of 4096 columns", "rows", queries},
	{"append", "append of one row, 32 heads of 128", "rows there", keys},
	{"linear", "Linear, 4096 x 4096 weights", "rows", queries},
	{"pooled", "pooled view, causal, one head of 128, to 64 x 64", "queries and keys", queries},
}

const across, wide, high, dpi = 2, 6 * vg.Inch, 3.6 * vg.Inch, 100

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: plots FILE.json")
		os.Exit(2)
	}
	draw := scaling
	if strings.HasPrefix(filepath.Base(os.Args[1]), "soak") {
		draw = soak
	}
	if err := draw(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "plots:", err)
		os.Exit(1)
	}
}

func scaling(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	var measured struct{ Rows []row }
	if err := json.Unmarshal(text, &measured); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	var tiles [][]*plot.Plot
	for i, p := range panels {
		one, err := p.draw(measured.Rows)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", name, p.op, err)
		}
		if i%across == 0 {
			tiles = append(tiles, nil)
		}
		tiles[i/across] = append(tiles[i/across], one)
	}
	return store(name, tiles)
}

// store writes plots in rows beside the file that they come from.
func store(name string, tiles [][]*plot.Plot) error {
	img := vgimg.NewWith(vgimg.UseWH(across*wide, vg.Length(len(tiles))*high), vgimg.UseDPI(dpi))
	t := draw.Tiles{Rows: len(tiles), Cols: across, PadX: vg.Points(14), PadY: vg.Points(14), PadTop: vg.Points(8), PadBottom: vg.Points(8), PadLeft: vg.Points(8), PadRight: vg.Points(14)}
	for y, line := range plot.Align(tiles, t, draw.New(img)) {
		for x, c := range line {
			tiles[y][x].Draw(c)
		}
	}
	out, err := os.Create(strings.TrimSuffix(name, ".json") + ".png")
	if err != nil {
		return err
	}
	_, err = vgimg.PngCanvas{Canvas: img}.WriteTo(out)
	return errors.Join(err, out.Close())
}

func (p panel) draw(rows []row) (*plot.Plot, error) {
	var ours, peer, floor plotter.XYs
	most, least := 0.0, math.Inf(1)
	for _, r := range rows {
		if r.Op != p.op {
			continue
		}
		add := func(to *plotter.XYs, ms float64) {
			if ms > 0 {
				*to = append(*to, plotter.XY{X: float64(p.size(r)), Y: 1e3 * ms})
				most = math.Max(most, 1e3*ms)
			}
		}
		add(&ours, r.MS)
		add(&peer, r.PeerMS)
		add(&floor, r.FloorMS)
		least = math.Min(least, 1e3*r.MS)
	}
	if len(ours) == 0 || len(peer) == 0 || len(floor) == 0 {
		return nil, errors.New("no rows")
	}
	c := plot.New()
	c.Title.Text, c.X.Label.Text, c.Y.Label.Text = p.title, p.axis, "time, us"
	c.X.Scale, c.Y.Scale = plot.LogScale{}, plot.LogScale{}
	c.X.Tick.Marker, c.Y.Tick.Marker = decades{}, decades{}
	c.Add(plotter.NewGrid())
	for _, s := range []struct {
		name  string
		at    plotter.XYs
		ink   color.Color
		shape draw.GlyphDrawer
		dash  []vg.Length
	}{
		{"attnb", ours, color.RGBA{0x1f, 0x4e, 0xa8, 255}, draw.CircleGlyph{}, nil},
		{"PyTorch, quickest f32 path", peer, color.RGBA{0xc8, 0x5a, 0x11, 255}, draw.PyramidGlyph{}, nil},
		{"floor", floor, color.Gray{0x60}, nil, []vg.Length{vg.Points(5), vg.Points(3)}},
	} {
		line, points, err := plotter.NewLinePoints(s.at)
		if err != nil {
			return nil, err
		}
		line.Color, line.Width, line.Dashes = s.ink, vg.Points(1.6), s.dash
		c.Add(line)
		if s.shape == nil {
			c.Legend.Add(s.name, line)
			continue
		}
		points.Color, points.Shape, points.Radius = s.ink, s.shape, vg.Points(3)
		c.Add(points)
		c.Legend.Add(s.name, line, points)
	}
	c.Legend.Top, c.Legend.Left, c.Legend.XOffs, c.Legend.YOffs = true, true, vg.Points(6), -vg.Points(5)
	// A floor far below what any launch takes would leave the curves no room.
	c.Y.Min, c.Y.Max = math.Pow(10, math.Floor(math.Log10(least))-1), math.Pow(10, math.Ceil(math.Log10(most)+0.6))
	c.X.Min, c.X.Max = ours[0].X/1.3, ours[len(ours)-1].X*1.3
	return c, nil
}

// decades marks the powers of ten, and the steps between them without a number.
type decades struct{}

func (decades) Ticks(from, to float64) (ticks []plot.Tick) {
	for e := math.Floor(math.Log10(from)); e <= math.Log10(to)+1; e++ {
		for step := range 9 {
			v := float64(step+1) * math.Pow(10, e)
			if v < from || v > to {
				continue
			}
			label := ""
			if step == 0 {
				label = number(v)
			}
			ticks = append(ticks, plot.Tick{Value: v, Label: label})
		}
	}
	return ticks
}

// number writes a power of ten, with spaces between thousands.
func number(v float64) string {
	s := fmt.Sprintf("%.10g", v)
	for i := len(s) - 3; v >= 1e3 && i > 0; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return s
}

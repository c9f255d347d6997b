package viz

import (
	_ "embed"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"html"
	"image"
	"math"
	"strings"

	"github.com/attnb/attnb/viz/echarts"
)

// The interactive view draws every cell in the browser: this many at most.
const (
	maxCells = 64 * 64       // of a matrix
	maxAll   = 16 * maxCells // of all
)

//go:embed heatmap.js
var script string

//go:embed page.js
var pageScript string

// HTML renders the heatmap as an interactive fragment for a page or a notebook's text/html output: hovering shows a cell's
// indices, labels and exact value, ctrl and the wheel zoom, dragging moves, a double click shows all again.
//
// The fragment needs nothing else: it carries ECharts, and the picture as PNG, which shows where scripts do not run. Its text
// follows the page's colour. A matrix may have 4096 cells (64 x 64), all matrices 65536; beyond that the error is
// a *[TooLargeError]. For a heatmap that cannot be drawn it is an *[InputError].
func (h Heatmap) HTML() (string, error) {
	if err := h.check(); err != nil {
		return "", err
	}
	tooLarge := &TooLargeError{h.Title, len(h.Matrices), h.rows(), h.cols()}
	if cells := len(h.Matrices[0].Values); cells > maxCells || len(h.Matrices) > maxAll/cells {
		return "", tooLarge
	}
	d := h.prepare()
	if d.layout.pool != image.Pt(1, 1) { // many columns in few rows
		return "", tooLarge
	}
	still, err := d.picture()
	if err != nil {
		return "", err
	}
	view, err := d.view()
	if err != nil {
		return "", err
	}
	// json.Marshal escapes <, >, & and the line separators: nothing in a label ends the script or begins a tag
	data, err := json.Marshal(view)
	if err != nil {
		return "", fmt.Errorf("heatmap: %w", err)
	}
	sum := fnv.New64a()
	sum.Write(data)
	id := fmt.Sprintf("attnb-%016x", sum.Sum64())

	var b strings.Builder
	fmt.Fprintf(&b, `<div class="attnb-heatmap" data-attnb="%s" style="overflow-x:auto"><img src="data:image/png;base64,%s" width="%d" height="%d" alt="%s"></div>`,
		id, base64.StdEncoding.EncodeToString(still.PNG), still.Width, still.Height, html.EscapeString(still.Alt))
	b.WriteString("\n<script>(() => {\n")
	b.WriteString(pageScript)
	b.WriteString(script)
	// the same picture may stand in a page twice: a script draws into the element before it, or into the first that none has taken
	fmt.Fprintf(&b, `const mine = '[data-attnb="%s"]:not([data-taken])', before = document.currentScript?.previousElementSibling;
const host = before?.matches(mine) ? before : document.querySelector(mine);
if (host) { host.dataset.taken = ""; attnbHeatmap(host, `, id)
	b.Write(data)
	fmt.Fprintf(&b, ", %q); }\n})()</script>\n", echarts.Packed())
	return b.String(), nil
}

// view is what heatmap.js draws from.
type view struct {
	Library    string         `json:"library"`
	Option     map[string]any `json:"option"`
	Width      int            `json:"width"`
	RowRoom    int            `json:"rowRoom"` // for the labels of an axis, along them
	ColRoom    int            `json:"colRoom"`
	RowStride  int            `json:"rowStride"`
	ColStride  int            `json:"colStride"`
	Rows       int            `json:"rows"`
	Cols       int            `json:"cols"`
	RowAxis    string         `json:"rowAxis"`
	ColAxis    string         `json:"colAxis"`
	RowLabels  []string       `json:"rowLabels"`
	ColLabels  []string       `json:"colLabels"`
	RowNames   []string       `json:"rowNames"` // what the rows stand for; null: 0, 1, ...
	ColNames   []string       `json:"colNames"`
	Names      []string       `json:"names"`
	Quantity   string         `json:"quantity"`
	Values     []string       `json:"values"` // a matrix each: f32, little endian, base64
	Masks      []string       `json:"masks"`  // a matrix each: a bit a cell, base64; empty: none masked
	Absent     []string       `json:"absent"` // the same, of cells that do not exist
	Scale      viewScale      `json:"scale"`
	Colours    viewColours    `json:"colours"`
	LightInk   []bool         `json:"lightInk"` // by colour of the map: numbers on it are white
	Numbers    [][]string     `json:"numbers"`  // written in the cells; null: they do not fit
	NumberSize float64        `json:"numberSize"`
	Marks      []viewMark     `json:"marks"`
	Texts      []viewText     `json:"texts"`
	Ticks      []viewTick     `json:"ticks"`
	Legend     []viewEntry    `json:"legend"`
	LegendTop  int            `json:"legendTop"`
}

type viewScale struct {
	Errors   bool    `json:"errors"`
	Log      bool    `json:"log"`
	Steps    bool    `json:"steps"`
	Lo       float64 `json:"lo"`
	Hi       float64 `json:"hi"`
	BelowOne float64 `json:"belowOne"`
}

type viewColours struct {
	Masked     [2]string         `json:"masked"` // ground and hatching
	MaskedDark [2]string         `json:"maskedDark"`
	Fixed      map[string]string `json:"fixed"`
}

type viewMark struct {
	Matrix int    `json:"matrix"`
	Row    int    `json:"row"`
	Col    int    `json:"col"`
	Label  string `json:"label"`
}

type viewText struct {
	X    float64 `json:"x"`
	Y    float64 `json:"y"`
	CSS  string  `json:"css"`
	Text string  `json:"text"`
}

type viewTick struct {
	X      float64 `json:"x"`
	Y      float64 `json:"y"`
	Text   string  `json:"text"`
	Strong bool    `json:"strong"`
}

type viewEntry struct {
	Class string `json:"class"` // empty: a mark
	Text  string `json:"text"`
}

func (d *drawing) view() (*view, error) {
	h, l := d.Heatmap, d.layout
	option, err := h.option(l)
	if err != nil {
		return nil, err
	}
	v := &view{
		Library: echarts.Global, Option: option, Width: l.width / density,
		RowRoom: l.rowRoom/density + 4, ColRoom: l.colLength/density + 4, RowStride: strideOf(l.rowTicks), ColStride: strideOf(l.colTicks),
		Rows: h.rows(), Cols: h.cols(), RowAxis: h.rowAxis(), ColAxis: h.colAxis(), Quantity: h.quantity(),
		Scale:     viewScale{h.Kind == Errors, h.Kind == LogProbabilities, h.Kind == Steps, d.scale.lo, d.scale.hi, belowOne},
		Colours:   h.Kind.pageColours(),
		Marks:     []viewMark{},
		Legend:    []viewEntry{},
		LegendTop: l.legendTop / density,
	}
	v.RowLabels, v.ColLabels = visibleAll(h.RowLabels), visibleAll(h.ColLabels)
	v.RowNames, v.ColNames = h.RowSpan.names(h.rows()), h.ColSpan.names(h.cols())
	for i, m := range d.matrices {
		v.Names = append(v.Names, h.Matrices[i].Name)
		v.Values = append(v.Values, m.packed())
		v.Masks, v.Absent = append(v.Masks, m.bits(masked)), append(v.Absent, m.bits(absent))
	}
	for _, c := range h.Kind.colours() {
		v.LightInk = append(v.LightInk, luminance(c) <= darkest)
	}
	numbers, size := d.numbers()
	v.Numbers, v.NumberSize = numbers, size/density
	for _, m := range h.Marks {
		v.Marks = append(v.Marks, viewMark(m))
	}
	v.Texts = d.texts()
	for _, t := range l.barTicks(d.scale) {
		x, y := css(image.Pt(l.bar.Max.X+tickLength, t.y))
		v.Ticks = append(v.Ticks, viewTick{x, y, d.scale.text(t.value), t.strong})
	}
	for _, e := range h.legend(d.summary, visible) {
		if e.mark > 0 {
			v.Legend = append(v.Legend, viewEntry{"", e.text})
		} else {
			v.Legend = append(v.Legend, viewEntry{e.class.name(), e.text})
		}
	}
	return v, nil
}

// texts are the title, the subtitle, the panels' names and the colour bar's.
func (d *drawing) texts() []viewText {
	l := d.layout
	y := float64(margin) / density
	var t []viewText
	room := fmt.Sprintf("max-width:%dpx;overflow:hidden;text-overflow:ellipsis;", (l.width-2*margin)/density)
	if d.Title != "" {
		t = append(t, viewText{margin / density, y - 2, room + "font-size:15.5px;font-weight:600", visible(strings.TrimSpace(d.Title))})
		y += float64(lineOf(titleSize)) / density
	}
	for _, s := range l.subtitleLines {
		t = append(t, viewText{margin / density, y - 1, room + "font-size:11.5px;opacity:.75", s})
		y += float64(lineOf(subtitleSize)) / density
	}
	for i, p := range l.panels {
		if name := d.Matrices[i].Name; name != "" && l.named {
			x, y := css(p.Min)
			y -= float64(l.noteRoom) / density
			for k, s := range l.notesOf(i) {
				t = append(t, viewText{x, y + float64(k*lineOf(tickSize))/density - 3, "font-size:10.5px;opacity:.75", s})
			}
			t = append(t, viewText{x, y - 18, fmt.Sprintf("max-width:%spx;overflow:hidden;text-overflow:ellipsis;font-size:12px;font-weight:600", px(p.Dx())), visible(name)})
		}
	}
	x, y := css(l.bar.Min)
	return append(t, viewText{x, y - 24, "font-size:11px", d.quantity()})
}

func strideOf(t []tick) int {
	if len(t) < 2 {
		return 1
	}
	return t[1].index - t[0].index
}

func visibleAll(labels []string) []string {
	if labels == nil {
		return nil
	}
	out := make([]string, len(labels))
	for i, s := range labels {
		out[i] = visible(s)
	}
	return out
}

// packed is a matrix for the page: the bits of its values. The value of a masked or absent cell stays here.
func (c cells) packed() string {
	raw := make([]byte, 4*len(c.value))
	for k, v := range c.value {
		if c.class[k] > masked {
			binary.LittleEndian.PutUint32(raw[4*k:], math.Float32bits(v))
		}
	}
	return base64.StdEncoding.EncodeToString(raw)
}

// bits say which cells are of a class; empty: none.
func (c cells) bits(of class) string {
	bits := make([]byte, ceilDiv(len(c.class), 8))
	some := false
	for k, class := range c.class {
		if class == of {
			bits[k/8] |= 1 << (k % 8)
			some = true
		}
	}
	if !some {
		return ""
	}
	return base64.StdEncoding.EncodeToString(bits)
}

package viz

import (
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"html"
	"strings"
	"sync"
)

// What an output may hold, in bytes of a notebook, where a PNG stands in base64: pages stay pleasant.
const (
	maxOutput    = 1_000_000
	maxOneToOne  = 300_000 // where the picture has as many cells as the matrix
	maxLabelText = 100_000 // of all labels
)

// Zoom is a heatmap that a page zooms into. The heatmap is what shows first, and as PNG; what it was pooled from, or a part of that,
// may lie beside it, and a program that can compute more may supply the page with it.
type Zoom struct {
	Heatmap
	// Rows and Cols are the size of the whole matrix, of which the heatmap's spans are a part or all. 0: they end where it ends.
	Rows, Cols int
	// By is what a cell is of the cells that it stands for: "largest", "smallest", "mean", "sum". Empty: the value of the largest
	// magnitude.
	By string
	// Finer are, for each matrix, sheets with more cells, coarse to fine. They are stored as far as an output has room.
	Finer [][]Part
	// RowTokens and ColTokens label the rows and columns of the whole matrix. Nil: none.
	RowTokens, ColTokens []string
	// ID names the picture to whoever supplies finer cells. Empty: nobody does.
	ID string
	// Both says that the supplier knows scores as well as probabilities of a single cell.
	Both bool
	// Index numbers the matrices to the supplier, and in Call. Nil: 0, 1, ...
	Index []int
	// Call is the Go line that shows this, without its closing bracket, as "attn.Map(q, k". Empty: none is offered.
	Call string
	// OneHead has the Go line name the matrix also where the picture has one.
	OneHead bool
}

// Part is a part of a matrix in more or fewer cells: those of Matrix stand for the indices of the spans.
type Part struct {
	Matrix
	RowSpan, ColSpan Span
}

//go:embed sheet.js
var sheetScript string

//go:embed axes.js
var axesScript string

//go:embed frame.js
var frameScript string

//go:embed zoom.js
var zoomScript string

// zoomer is the script of all zooming pictures, packed, and the name under which a page keeps it.
var zoomer = sync.OnceValues(func() (packed, name string) {
	var b strings.Builder
	for line := range strings.Lines(pageScript + sheetScript + axesScript + frameScript + zoomScript) {
		if line = strings.TrimLeft(line, " "); !strings.HasPrefix(line, "//") {
			b.WriteString(line)
		}
	}
	sum := fnv.New64a()
	sum.Write([]byte(b.String()))
	name = fmt.Sprintf("attnb-zoom-%016x", sum.Sum64())
	return base64.StdEncoding.EncodeToString(zipped([]byte("(() => {\n" + b.String() + "window[\"" + name + "\"] = attnbZoom;\n})()\n"))), name
})

// Render draws the labelled picture, and makes a fragment of HTML for a page or a notebook's text/html output: the same picture, in
// which the wheel, dragging and the keyboard zoom and move, and the pointer reads values. Together they take at most
// 1 MB of a notebook, for which what is finer is stored or left out; where the picture itself is larger the error is a
// *[TooLargeError]. Where no cell is pooled, nothing is stored beyond 300 kB: a picture of noise alone may pass that a little.
//
// The fragment needs no network. Where scripts do not run it shows the PNG.
func (z Zoom) Render() (Picture, string, error) {
	if err := z.check(); err != nil {
		return Picture{}, "", err
	}
	d := z.prepare()
	still, shown, err := z.still(d)
	if err != nil {
		return Picture{}, "", err
	}
	v := z.view(d)
	limit := maxOutput
	if !z.pooled() {
		limit = maxOneToOne
	}
	bare, err := z.fragment(v, still, shown.png)
	if err != nil {
		return Picture{}, "", err
	}
	room := limit - base64.StdEncoding.EncodedLen(len(still.PNG)) - len(bare)
	if room < limit-maxOutput {
		return Picture{}, "", &TooLargeError{z.Title, len(z.Matrices), z.rows(), z.cols()}
	}
	z.store(d, v, shown, room)
	fragment, err := z.fragment(v, still, shown.png)
	return still, fragment, err
}

// fragment is the HTML of a view.
func (z Zoom) fragment(v *zoomView, still Picture, shown []byte) (string, error) {
	// json.Marshal escapes <, >, & and the line separators: nothing in a label ends the script or begins a tag
	data, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("heatmap: %w", err)
	}
	sum := fnv.New64a()
	sum.Write(data)
	id := fmt.Sprintf("attnb-%016x", sum.Sum64())
	packed, name := zoomer()
	var b strings.Builder
	fmt.Fprintf(&b, `<div class="attnb-zoom" data-attnb="%s" style="overflow-x:auto"><img src="data:image/png;base64,%s" width="%d" height="%d" alt="%s"></div>`,
		id, base64.StdEncoding.EncodeToString(shown), still.Width, still.Height, html.EscapeString(still.Alt))
	fmt.Fprintf(&b, `
<script>(() => {
const mine = '[data-attnb="%s"]:not([data-taken])', before = document.currentScript?.previousElementSibling;
const host = before?.matches(mine) ? before : document.querySelector(mine);
if (!host) return;
host.dataset.taken = "";
const name = %q, loading = name + " loading";
async function load() {
  if (window[name]) return;
  const packed = Uint8Array.from(atob(%q), c => c.charCodeAt(0));
  const script = document.createElement("script");
  script.textContent = await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  document.head.append(script);
  script.remove();
  if (!window[name]) throw new Error("this page runs no script of ours");
}
(window[loading] ??= load().finally(() => delete window[loading])).then(() => window[name](host, `, id, name, packed)
	b.Write(data)
	b.WriteString(`)).catch(err => {
  host.firstElementChild.style.display = "";
  host.append(Object.assign(document.createElement("div"), { style: "font-size:11px;opacity:.7", textContent: "The picture is not interactive here: " + (err.message || err) }));
});
})()</script>
`)
	return b.String(), nil
}

// check refuses what cannot be drawn, or not zoomed into.
func (z Zoom) check() error {
	if err := z.Heatmap.check(); err != nil {
		return err
	}
	bad := func(format string, args ...any) error {
		return &InputError{Title: z.Title, Matrix: -1, Reason: fmt.Sprintf(format, args...)}
	}
	switch z.Kind {
	case Scores, Probabilities, LogProbabilities, Errors, Signed, Steps:
	default:
		return bad("kind %d has no zooming picture", z.Kind)
	}
	rows, cols := z.size()
	if _, _, pool := z.grid(); pool.X > 1 || pool.Y > 1 {
		return bad("%d x %d cells are more than the picture has pixels: pool them", z.rows(), z.cols())
	}
	switch {
	case rows < z.rowSpan().To || cols < z.colSpan().To:
		return bad("the picture shows indices beyond %d x %d", rows, cols)
	case z.Index != nil && len(z.Index) != len(z.Matrices):
		return bad("%d indices for %d matrices", len(z.Index), len(z.Matrices))
	case z.Finer != nil && len(z.Finer) != len(z.Matrices):
		return bad("finer cells for %d of %d matrices", len(z.Finer), len(z.Matrices))
	case z.RowTokens != nil && len(z.RowTokens) != rows:
		return bad("%d row labels for %d rows", len(z.RowTokens), rows)
	case z.ColTokens != nil && len(z.ColTokens) != cols:
		return bad("%d column labels for %d columns", len(z.ColTokens), cols)
	}
	for i, finer := range z.Finer {
		for _, p := range finer {
			part := Heatmap{Title: z.Title, Kind: z.Kind, Matrices: []Matrix{p.Matrix}, RowSpan: p.RowSpan, ColSpan: p.ColSpan}
			if err := part.check(); err != nil {
				return err
			}
			if r, c := part.rowSpan(), part.colSpan(); r.To > rows || c.To > cols {
				return bad("a part of matrix %d lies beyond %d x %d", i, rows, cols)
			}
		}
	}
	return nil
}

func (z Zoom) size() (rows, cols int) {
	rows, cols = z.Rows, z.Cols
	if rows == 0 {
		rows = z.rowSpan().To
	}
	if cols == 0 {
		cols = z.colSpan().To
	}
	return rows, cols
}

package viz

import (
	"image"
	"math"
	"strconv"
)

// Pictures are laid out in pixels at twice the display size, so that they are crisp on dense screens.
const density = 2

// Sizes and spaces, in picture pixels.
const (
	margin       = 28
	titleSize    = 31
	subtitleSize = 23
	nameSize     = 24
	axisSize     = 24
	tickSize     = 21
	legendSize   = 22
	leading      = 1.42 // line height in ems
	tickLength   = 8
	labelLimit   = 250 // longest tick label
	minText      = 640 // least room for title and legend

	oneSide   = 1100 // the longest side of a single matrix
	allWide   = 1640 // and of all panels together
	allHigh   = 1500
	leastSide = 24
	maxCell   = 96
	thin      = 150 // a matrix of few rows or columns is stretched to this width
	gap       = 26  // between panels
	barWidth  = 26
	barHigh   = 620
	barLow    = 190

	barNameGap = 34 // from the bar's top up to the middle of its name
)

// tick is a labelled row or column.
type tick struct {
	index int
	text  string
}

// layout says where everything is.
type layout struct {
	width, height int
	across        int         // panels in a line
	cell          image.Point // pixels of a cell
	pool          image.Point // cells of the matrix in a drawn cell, across and down
	panels        []image.Rectangle
	rowTicks      []tick
	colTicks      []tick
	turn          float64 // of the column labels, degrees
	titleLines    []string
	subtitleLines []string
	rowRoom       int        // width of the row labels
	colRoom       int        // height of the column labels
	colLength     int        // their length, along them
	named         bool       // panels have names above them
	notes         [][]string // under the names, by panel; nil: none, or no room
	noteRoom      int        // height of all lines of notes
	quantity      string
	bar           image.Rectangle
	legendTop     int
	legendLines   [][]entry
}

// plan lays a heatmap out. Its legend depends on what the cells hold, so it is given.
func (h Heatmap) plan(bar scale, subtitle []string, legend []entry, pool, cell image.Point, across int) layout {
	l := layout{across: across, cell: cell, pool: pool}
	n := len(h.Matrices)
	down := ceilDiv(n, across)
	drawn := image.Pt(ceilDiv(h.cols(), pool.X)*cell.X, ceilDiv(h.rows(), pool.Y)*cell.Y)

	l.rowTicks = ticksOf(h.RowLabels, h.rows(), h.rowSpan(), ceilDiv(h.rowStep()*pool.Y, cell.Y))
	l.rowRoom = widest(l.rowTicks) + 8 // some slack for a page's own font
	l.colRoom = l.columns(h)
	l.colLength = widest(l.colTicks)

	nameHigh := 0
	for _, m := range h.Matrices {
		if m.Name != "" && drawn.X >= 2*nameSize {
			l.named, nameHigh = true, lineOf(nameSize)
		}
	}
	l.note(h, drawn.X)
	nameHigh += l.noteRoom
	l.quantity = printed(regular(), h.quantity())
	left := margin + lineOf(axisSize) + l.rowRoom + tickLength + 8
	if l.turn > 0 { // turned labels reach out to the left
		left = max(left, margin+int(float64(l.colLength)*math.Cos(l.turn*math.Pi/180))-cell.X/2)
	}
	left = whole(left)
	panelsWide := across*drawn.X + (across-1)*gap
	panelsHigh := down*drawn.Y + (down-1)*(gap+nameHigh) + nameHigh
	barLeft := left + panelsWide + 2*gap
	l.width = barLeft + barWidth + max(widestTick(bar)+tickLength+10, int(regular().width(l.quantity, tickSize))-barWidth+4) + margin

	// text over and under the picture
	title := printed(bold(), h.Title)
	room := h.roomOf()
	l.width = max(l.width, 2*margin+int(min(max(float64(min(minText, room.X)), bold().width(title, titleSize)+2), float64(room.X))))
	wide := float64(l.width - 2*margin)
	y := margin
	if title != "" {
		l.titleLines = []string{bold().fit(title, titleSize, wide)}
		y += lineOf(titleSize)
	}
	l.subtitleLines = wrap(subtitle, " • ", subtitleSize, wide)
	y += len(l.subtitleLines) * lineOf(subtitleSize)
	y += gap - 6

	top := whole(y)
	for i := range n {
		at := image.Pt(left+i%across*(drawn.X+gap), top+nameHigh+i/across*(drawn.Y+gap+nameHigh))
		l.panels = append(l.panels, image.Rectangle{at, at.Add(drawn)})
	}
	barTop := top + nameHigh
	if nameHigh == 0 {
		barTop += barNameGap
		for i := range l.panels {
			l.panels[i] = l.panels[i].Add(image.Pt(0, barTop-top))
		}
		panelsHigh += barTop - top
	}
	high := min(max(panelsHigh-(barTop-top), barLow), barHigh)
	l.bar = image.Rect(barLeft, barTop, barLeft+barWidth, barTop+high)
	y = max(top+panelsHigh+tickLength+l.colRoom+8+lineOf(axisSize), l.bar.Max.Y+tickSize)

	l.legendTop = y + 12
	l.legendLines = wrapEntries(legend, wide)
	if len(legend) > 0 {
		y = l.legendTop + len(l.legendLines)*(lineOf(legendSize)+7)
	}
	l.height = y + margin - 6
	return l
}

// note wraps the notes of all panels, where the longest fits the width of one.
func (l *layout) note(h Heatmap, width int) {
	var notes [][]string
	most := 0
	for _, m := range h.Matrices {
		parts := make([]string, len(m.Notes))
		for i, s := range m.Notes {
			if parts[i] = printed(regular(), s); regular().width(parts[i], tickSize) > float64(width) {
				return
			}
		}
		lines := wrap(parts, " • ", tickSize, float64(width))
		notes, most = append(notes, lines), max(most, len(lines))
	}
	if most > 0 {
		l.notes, l.noteRoom = notes, most*lineOf(tickSize)+6
	}
}

func (l layout) notesOf(panel int) []string {
	if l.notes == nil {
		return nil
	}
	return l.notes[panel]
}

// rowStep is the least distance of row labels: indices read well with some of them left out, tokens want to be complete.
func (h Heatmap) rowStep() int {
	if h.RowLabels == nil {
		return 2 * tickSize
	}
	return tickSize * 4 / 3
}

// columns chooses the column ticks and their turn, and returns the height that they need.
func (l *layout) columns(h Heatmap) int {
	all := ticksOf(h.ColLabels, h.cols(), h.colSpan(), 1)
	step := float64(l.cell.X) / float64(l.pool.X) // pixels a column
	level := float64(widest(all) + 14)
	if h.ColLabels == nil || level <= step {
		l.colTicks = ticksOf(h.ColLabels, h.cols(), h.colSpan(), int(math.Ceil(level/step)))
		return lineOf(tickSize)
	}
	l.turn = 90
	if step >= 30 {
		l.turn = 50
	}
	l.colTicks = ticksOf(h.ColLabels, h.cols(), h.colSpan(), int(math.Ceil(tickSize*4/3/step)))
	return int(float64(widest(l.colTicks))*math.Sin(l.turn*math.Pi/180)) + tickSize
}

// grid chooses how many panels stand in a line, how many pixels a cell has and how many cells are pooled into one.
func (h Heatmap) grid() (across int, cell, pool image.Point) {
	n := len(h.Matrices)
	least := math.Inf(1)
	for g := 1; g <= n; g++ {
		if h.Columns > 0 && g != min(h.Columns, n) {
			continue
		}
		box := h.side(n, g)
		c, p := h.cellIn(box)
		wide := float64(ceilDiv(h.cols(), p.X)*c.X+gap) * float64(g)
		down := ceilDiv(n, g)
		high := float64(ceilDiv(h.rows(), p.Y)*c.Y+gap) * float64(down)
		cost := math.Abs(math.Log(wide/high/1.35)) + 2*float64(g*down-n)/float64(n)
		if cost < least {
			least, across, cell, pool = cost, g, c, p
		}
	}
	return across, cell, pool
}

// PanelSide is how many cells a panel has room for, each way, where n square matrices are drawn as small multiples: with more they
// are pooled.
func PanelSide(n int) int {
	h := Heatmap{Matrices: make([]Matrix, max(n, 1))}
	for side := oneSide; ; side -= density {
		h.Matrices[0] = Matrix{Rows: side, Cols: side} // all are of its size
		if _, _, pool := h.grid(); pool == image.Pt(1, 1) || side <= leastSide {
			return side
		}
	}
}

// side is the room of a panel when across of n stand in a line.
func (h Heatmap) side(n, across int) image.Point {
	down := ceilDiv(n, across)
	room := h.roomOf()
	return image.Pt(
		min(max((room.X-(across-1)*gap)/across, leastSide), oneSide),
		min(max((room.Y-(down-1)*gap)/down, leastSide), oneSide))
}

// roomOf is the room of all panels.
func (h Heatmap) roomOf() image.Point {
	if h.room == (image.Point{}) {
		return image.Pt(allWide, allHigh)
	}
	return h.room
}

// cellIn fits a matrix into a box: cells of whole pixels, square unless the matrix is much longer one way.
func (h Heatmap) cellIn(box image.Point) (cell, pool image.Point) {
	pool = image.Pt(ceilDiv(h.cols(), box.X), ceilDiv(h.rows(), box.Y))
	most := maxCell
	if h.shared != nil { // one panel, enlarged
		most *= 2
	}
	fit := func(box, n int) int { return min(max(box/n, 1), most) }
	cols, rows := ceilDiv(h.cols(), pool.X), ceilDiv(h.rows(), pool.Y)
	wide, high := fit(box.X, cols), fit(box.Y, rows)
	square := min(wide, high)
	stretch := func(free, n int) int { return min(free, max(square, min(thin, box.X, box.Y)/n)) }
	return image.Pt(whole(stretch(wide, cols)), whole(stretch(high, rows))), pool
}

// whole rounds a length to whole display pixels, where it has several: a page draws crisp edges only there.
func whole(v int) int {
	if v < 3*density {
		return v
	}
	return v - v%density
}

// ticksOf labels n rows or columns, at least stride apart, at multiples of a round number: 1, 2 or 5 times a power of ten. Of
// pooled ones that number counts what they stand for.
func ticksOf(labels []string, n int, s Span, stride int) []tick {
	step := max(stride, 1)
	if s.len() > n {
		step = ceilDiv(step*s.len(), n)
	}
	if step > 1 {
		step = int(math.Round(roundUp(float64(step))))
	}
	var t []tick
	for at := ceilDiv(s.From, step) * step; at < s.To; at += step {
		i := s.row(at, n)
		text := strconv.Itoa(at)
		if labels != nil {
			text = regular().fit(shown(labels[i], regular().has), tickSize, labelLimit)
		}
		t = append(t, tick{i, text})
	}
	return t
}

func widest(ticks []tick) int {
	most := 0.0
	for _, t := range ticks {
		most = max(most, regular().width(t.text, tickSize))
	}
	return int(math.Ceil(most))
}

func widestTick(s scale) int {
	most := 0.0
	for _, v := range s.ticks() {
		most = max(most, regular().width(s.text(v), tickSize))
	}
	return int(math.Ceil(most))
}

// wrap joins parts into lines of at most room pixels.
func wrap(parts []string, joint string, size, room float64) []string {
	var lines []string
	for _, p := range parts {
		if n := len(lines) - 1; n >= 0 {
			if joined := lines[n] + joint + p; regular().width(joined, size) <= room {
				lines[n] = joined
				continue
			}
		}
		lines = append(lines, regular().fit(p, size, room))
	}
	return lines
}

// lineOf is the height of a line of text.
func lineOf(size float64) int { return int(size * leading) }

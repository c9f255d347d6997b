package wire

// Quantity is what a map of attention shows.
type Quantity uint8

const (
	QuantityDefault       Quantity = iota // probabilities of queries and keys; of a matrix what it holds
	QuantityProbabilities                 // after mask and softmax
	QuantityScores                        // before
)

// Reduce is how the visible cells that one cell of a picture stands for become one.
type Reduce uint8

const (
	ReduceMax Reduce = iota
	ReduceMean
	ReduceSum
	ReduceMin
)

// Map says what a map shows. Its zero value: the largest of each pool, all heads, everything, 512 cells each way at most.
type Map struct {
	Quantity      Quantity
	Reduce        Reduce
	Heads         []int // none: all
	Queries, Keys []int // from, up to but without; none: all
	Rows, Cols    int   // cells of the picture, at most; 0: 512
	Live          bool  // KindMap: hold what KindTile needs
}

func (m *Map) encode(e *encoder) {
	e.int(1, int(m.Quantity))
	e.int(2, int(m.Reduce))
	e.ints(3, m.Heads)
	e.ints(4, m.Queries)
	e.ints(5, m.Keys)
	e.int(6, m.Rows)
	e.int(7, m.Cols)
	e.bool(8, m.Live)
}

func (m *Map) decode(d *decoder) {
	for {
		tag, ok := d.more()
		if !ok {
			return
		}
		switch tag {
		case 1:
			m.Quantity = Quantity(d.small())
		case 2:
			m.Reduce = Reduce(d.small())
		case 3:
			m.Heads = d.ints()
		case 4:
			m.Queries = d.ints()
		case 5:
			m.Keys = d.ints()
		case 6:
			m.Rows = d.int()
		case 7:
			m.Cols = d.int()
		case 8:
			m.Live = d.bool()
		default:
			d.unknown()
		}
	}
}

// LiveMap is a map that the device process holds, to make tiles of it, until it is released or 64 others came after it.
type LiveMap struct {
	ID                   int // random, so that one of an earlier device process is not taken for another
	Heads, Queries, Keys int
	Quantity             Quantity // QuantityDefault: values that are neither
	Causal               bool     // query i sees the keys up to i+Diagonal
	Diagonal             int
	Shown                Map // what its picture shows
}

func (m *LiveMap) encode(e *encoder) {
	e.int(1, m.ID)
	e.int(2, m.Heads)
	e.int(3, m.Queries)
	e.int(4, m.Keys)
	e.int(5, int(m.Quantity))
	e.bool(6, m.Causal)
	e.int(7, m.Diagonal)
	e.nested(8, m.Shown.encode)
}

func (m *LiveMap) decode(d *decoder) {
	for {
		tag, ok := d.more()
		if !ok {
			return
		}
		switch tag {
		case 1:
			m.ID = d.int()
		case 2:
			m.Heads = d.int()
		case 3:
			m.Queries = d.int()
		case 4:
			m.Keys = d.int()
		case 5:
			m.Quantity = Quantity(d.small())
		case 6:
			m.Causal = d.bool()
		case 7:
			m.Diagonal = d.int()
		case 8:
			d.message(m.Shown.decode)
		default:
			d.unknown()
		}
	}
}

// Tile is one head of a map, pooled. Cell (i, j) stands for the queries from Queries[0] + i*n/Rows up to Queries[0] +
// (i+1)*n/Rows, both rounded down, n = Queries[1] - Queries[0], and for keys likewise.
type Tile struct {
	Head, Rows, Cols int
	Queries, Keys    []int
	// Seen is, for each row, the number of its cells, from the left, that hold something visible. The others are masked; their
	// value is 0.
	Seen []int
	// The least and the largest finite value that is not masked. Without one both are 0.
	Min, Max float64
	Values   []float32 // Rows x Cols; behind the frame
}

func (t *Tile) encode(e *encoder) {
	e.int(1, t.Head)
	e.int(2, t.Rows)
	e.int(3, t.Cols)
	e.ints(4, t.Queries)
	e.ints(5, t.Keys)
	e.ints(6, t.Seen)
	e.float(7, t.Min)
	e.float(8, t.Max)
}

func (t *Tile) decode(d *decoder) {
	for {
		tag, ok := d.more()
		if !ok {
			return
		}
		switch tag {
		case 1:
			t.Head = d.int()
		case 2:
			t.Rows = d.int()
		case 3:
			t.Cols = d.int()
		case 4:
			t.Queries = d.ints()
		case 5:
			t.Keys = d.ints()
		case 6:
			t.Seen = d.ints()
		case 7:
			t.Min = d.float()
		case 8:
			t.Max = d.float()
		default:
			d.unknown()
		}
	}
}

// Tile makes one tile of a live map: m names one head, or the map has one.
func (c *Conn) Tile(id int, m Map) (Tile, error) {
	a, values, err := c.exchange(Request{Kind: KindTile, Number: id, Map: &m}, nil)
	if err != nil {
		return Tile{}, err
	}
	if a.Tile == nil || a.Tile.Rows <= 0 || a.Tile.Cols <= 0 || len(values)/a.Tile.Cols != a.Tile.Rows || len(a.Tile.Seen) != a.Tile.Rows {
		return Tile{}, errMalformed
	}
	a.Tile.Values = values
	return *a.Tile, nil
}

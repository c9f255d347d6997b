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
	ReduceMagnitude // the value of the largest magnitude; of a matrix alone
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

func (m *Map) fields(c *codec) {
	enum(c, 1, &m.Quantity)
	enum(c, 2, &m.Reduce)
	c.ints(3, &m.Heads)
	c.ints(4, &m.Queries)
	c.ints(5, &m.Keys)
	c.int(6, &m.Rows)
	c.int(7, &m.Cols)
	c.bool(8, &m.Live)
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

func (m *LiveMap) fields(c *codec) {
	c.int(1, &m.ID)
	c.int(2, &m.Heads)
	c.int(3, &m.Queries)
	c.int(4, &m.Keys)
	enum(c, 5, &m.Quantity)
	c.bool(6, &m.Causal)
	c.int(7, &m.Diagonal)
	nested(c, 8, &m.Shown)
}

// Tile is one head of a map, pooled. Cell (i, j) stands for the queries from Queries[0] + i*n/Rows up to Queries[0] +
// (i+1)*n/Rows, both rounded down, n = Queries[1] - Queries[0], and for keys likewise.
type Tile struct {
	Head, Rows, Cols int
	Queries, Keys    []int
	// Hidden are the cells that hold nothing visible, as runs of them in the order of Values: from one number up to but without the next.
	// Their value is 0.
	Hidden []int
	// The least and the largest finite value that is not masked. Without one both are 0.
	Min, Max float64
	Values   []float32 // Rows x Cols; behind the frame
}

func (t *Tile) fields(c *codec) {
	c.int(1, &t.Head)
	c.int(2, &t.Rows)
	c.int(3, &t.Cols)
	c.ints(4, &t.Queries)
	c.ints(5, &t.Keys)
	c.ints(9, &t.Hidden)
	c.float(7, &t.Min)
	c.float(8, &t.Max)
}

// runs says whether Hidden are runs of cells, one behind the other.
func (t *Tile) runs() bool {
	if len(t.Hidden)%2 != 0 {
		return false
	}
	at := 0
	for _, next := range t.Hidden {
		if next < at || next > t.Rows*t.Cols {
			return false
		}
		at = next
	}
	return true
}

// Tile makes one tile of a live map: m names one head, or the map has one.
func (c *Conn) Tile(id int, m Map) (Tile, error) {
	a, values, err := c.exchange(Request{Kind: KindTile, Number: id, Map: &m}, nil)
	if err != nil {
		return Tile{}, err
	}
	if a.Tile == nil || a.Tile.Rows <= 0 || a.Tile.Cols <= 0 || len(values)/a.Tile.Cols != a.Tile.Rows || !a.Tile.runs() {
		return Tile{}, errMalformed
	}
	a.Tile.Values = values
	return *a.Tile, nil
}

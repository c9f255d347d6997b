package wire

// Subject is what KindDraw draws.
type Subject uint8

const (
	SubjectNone     Subject = iota
	SubjectLayers           // IDs: probabilities, a tensor a layer: one cell a head
	SubjectTrace            // IDs: scores, v: one query on its way to the context
	SubjectDecoding         // IDs: probabilities, a tensor a step
	SubjectTimeline         // IDs[0], a cache made by appends; or Writes
	SubjectRotation         // Rotations, one or two
)

// Statistic is a number about a head.
type Statistic uint8

const (
	StatisticEntropy  Statistic = iota // bits
	StatisticDistance                  // keys from the query
	StatisticSink                      // share of key 0
)

// Difference is how KindCheck and KindCompare show what is apart.
type Difference uint8

const (
	DifferenceRatio  Difference = iota // error / bound
	DifferenceSigned                   // both sides, and mine - expected
	DifferenceSteps                    // both sides, and mine - expected in f32 steps
)

// Drawing says what a picture shows.
type Drawing struct {
	Subject    Subject
	Statistic  Statistic
	Statistics bool // KindPicture: all of them beside each head
	Difference Difference
	Heads      []int // none: all
	Query      int
	Rows       int // of SubjectRotation
	Rotations  []Params
	Writes     []CacheWrite
}

// CacheWrite is what one step did to a cache: where Trim is set, its length was cut to Length; then slots were written.
type CacheWrite struct {
	Trim      bool
	Length    int
	Slots     []int
	Positions []int // one a slot; none: not known
}

func (w *CacheWrite) fields(c *codec) {
	c.bool(1, &w.Trim)
	c.int(2, &w.Length)
	c.ints(3, &w.Slots)
	c.ints(4, &w.Positions)
}

func (d *Drawing) fields(c *codec) {
	enum(c, 1, &d.Subject)
	enum(c, 2, &d.Statistic)
	c.bool(3, &d.Statistics)
	enum(c, 4, &d.Difference)
	c.ints(5, &d.Heads)
	c.int(6, &d.Query)
	c.int(7, &d.Rows)
	list(c, 8, &d.Rotations)
	list(c, 9, &d.Writes)
}

package wire

// Question asks about tensors: what explains them, whether a law holds, where an error enters. What a topic takes is listed where
// it is answered.
type Question struct {
	Topic    string
	Roles    []string // what each tensor of the request is, one an ID
	Settings []Fact
}

func (q *Question) fields(c *codec) {
	c.str(1, &q.Topic)
	c.strs(2, &q.Roles)
	list(c, 3, &q.Settings)
}

// Fact is one named thing: numbers, words, or both.
type Fact struct {
	Name    string
	Numbers []float64
	Words   []string
}

func (f *Fact) fields(c *codec) {
	c.str(1, &f.Name)
	c.floats(2, &f.Numbers)
	c.strs(3, &f.Words)
}

// Fault is one way in which tensors depart from what was declared of them.
type Fault struct {
	Kind, Detail string
	Fix          string // what to change; empty: nothing to say
}

func (f *Fault) fields(c *codec) {
	c.str(1, &f.Kind)
	c.str(2, &f.Detail)
	c.str(3, &f.Fix)
}

// Finding answers a question.
type Finding struct {
	Pass     bool
	Sentence string
	Faults   []Fault
	Facts    []Fact
}

func (f *Finding) fields(c *codec) {
	c.bool(1, &f.Pass)
	c.str(2, &f.Sentence)
	list(c, 3, &f.Faults)
	list(c, 4, &f.Facts)
}

// Call is what a question about a function of the client's needs before it can be answered: the function's result for the tensors
// of the answer and these numbers. The client asks on, with the call's ID as the request's Number and the result as IDs[0].
type Call struct {
	ID      int
	Numbers []int
}

func (x *Call) fields(c *codec) {
	c.int(1, &x.ID)
	c.ints(2, &x.Numbers)
}

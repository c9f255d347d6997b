package wire

// Control is something on the page that sets one parameter of recorded steps: a slider from From to To, or a list of Options.
// In a request of [KindRerun] only Name and Value count.
type Control struct {
	Name     string   // the parameter: "offset", "key offset", "pairing", "head", ...
	Label    string   // what stands beside it; empty: Name
	Options  []string // a list; Value is the number of one, from 0. None: a slider
	From, To float64
	Step     float64 // whole numbers where this is one; 0: any value, on a logarithmic scale
	Value    float64
	Typed    bool // a whole number to type instead of a slider
}

func (x *Control) fields(c *codec) {
	c.str(1, &x.Name)
	c.str(2, &x.Label)
	c.strs(3, &x.Options)
	c.float(4, &x.From)
	c.float(5, &x.To)
	c.float(6, &x.Step)
	c.float(7, &x.Value)
	c.bool(8, &x.Typed)
}

// Exploration is a recorded chain of steps that the device process runs again on demand. It holds the tensors that this
// needs until it is released.
type Exploration struct {
	ID       int // random, so that one of an earlier device process is not taken for another
	Controls []Control
}

func (x *Exploration) fields(c *codec) {
	c.int(1, &x.ID)
	list(c, 2, &x.Controls)
}

// Rerun runs an exploration again with these values of its controls, and returns the new picture.
func (c *Conn) Rerun(id int, settings []Control) (Display, error) {
	a, err := c.Do(Request{Kind: KindRerun, Number: id, Controls: settings})
	if err != nil {
		return Display{}, err
	}
	if a.Display == nil {
		return Display{}, errMalformed
	}
	return *a.Display, nil
}

// Release ends an exploration.
func (c *Conn) Release(id int) error {
	_, err := c.Do(Request{Kind: KindRelease, Number: id})
	return err
}

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
}

func (c *Control) encode(e *encoder) {
	e.str(1, c.Name)
	e.str(2, c.Label)
	e.strs(3, c.Options)
	e.float(4, c.From)
	e.float(5, c.To)
	e.float(6, c.Step)
	e.float(7, c.Value)
}

func (c *Control) decode(d *decoder) {
	for {
		tag, ok := d.more()
		if !ok {
			return
		}
		switch tag {
		case 1:
			c.Name = d.str()
		case 2:
			c.Label = d.str()
		case 3:
			c.Options = d.strs()
		case 4:
			c.From = d.float()
		case 5:
			c.To = d.float()
		case 6:
			c.Step = d.float()
		case 7:
			c.Value = d.float()
		default:
			d.unknown()
		}
	}
}

// Exploration is a recorded chain of steps that the device process runs again on demand. It holds the tensors that this
// needs until it is released.
type Exploration struct {
	ID       int // random, so that one of an earlier device process is not taken for another
	Controls []Control
}

func (x *Exploration) encode(e *encoder) {
	e.int(1, x.ID)
	for i := range x.Controls {
		e.nested(2, x.Controls[i].encode)
	}
}

func (x *Exploration) decode(d *decoder) {
	for {
		tag, ok := d.more()
		if !ok {
			return
		}
		switch tag {
		case 1:
			x.ID = d.int()
		case 2:
			var c Control
			d.message(c.decode)
			x.Controls = append(x.Controls, c)
		default:
			d.unknown()
		}
	}
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

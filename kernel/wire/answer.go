package wire

// Tensor describes a tensor of the device process. Shape, axes and labels are the same length or empty.
type Tensor struct {
	ID    int
	Name  string // empty: unnamed
	Shape []int
	Axes  []string
	Made  string // what it came from: "RoPE", "data/x.npz: qkv", ...
	Cell  int    // the cell that made it; 0 where unknown
	Empty int    // rows that saw nothing when it was made
}

func (t *Tensor) encode(e *encoder) {
	e.int(1, t.ID)
	e.str(2, t.Name)
	e.ints(3, t.Shape)
	e.strs(4, t.Axes)
	e.str(5, t.Made)
	e.int(6, t.Cell)
	e.int(7, t.Empty)
}

func (t *Tensor) decode(d *decoder) {
	for {
		tag, ok := d.more()
		if !ok {
			return
		}
		switch tag {
		case 1:
			t.ID = d.int()
		case 2:
			t.Name = d.str()
		case 3:
			t.Shape = d.ints()
		case 4:
			t.Axes = d.strs()
		case 5:
			t.Made = d.str()
		case 6:
			t.Cell = d.int()
		case 7:
			t.Empty = d.int()
		default:
			d.unknown()
		}
	}
}

// Part is one representation of a display.
type Part struct {
	MIME string
	Data []byte
}

func (p *Part) encode(e *encoder) {
	e.str(1, p.MIME)
	e.bytes(2, p.Data)
}

func (p *Part) decode(d *decoder) {
	for {
		tag, ok := d.more()
		if !ok {
			return
		}
		switch tag {
		case 1:
			p.MIME = d.str()
		case 2:
			p.Data = d.bytes()
		default:
			d.unknown()
		}
	}
}

// Display is what Jupyter shows for one display marker.
type Display struct {
	Parts    []Part
	Metadata []byte // a JSON object for the message's metadata; empty means {}
	UpdateID string // not empty: the display_id under which later displays may replace this one
	Replaces bool   // this one replaces what UpdateID shows
	// Exploration, not nil: the proxy shows controls beside the picture.
	Exploration *Exploration
	Map         *LiveMap // not nil: the picture is one of a map of which there are tiles
}

func (v *Display) encode(e *encoder) {
	for i := range v.Parts {
		e.nested(1, v.Parts[i].encode)
	}
	e.bytes(2, v.Metadata)
	e.str(3, v.UpdateID)
	e.bool(4, v.Replaces)
	if v.Exploration != nil {
		e.nested(5, v.Exploration.encode)
	}
	if v.Map != nil {
		e.nested(6, v.Map.encode)
	}
}

func (v *Display) decode(d *decoder) {
	for {
		tag, ok := d.more()
		if !ok {
			return
		}
		switch tag {
		case 1:
			var p Part
			d.message(p.decode)
			v.Parts = append(v.Parts, p)
		case 2:
			v.Metadata = d.bytes()
		case 3:
			v.UpdateID = d.str()
		case 4:
			v.Replaces = d.bool()
		case 5:
			v.Exploration = new(Exploration)
			d.message(v.Exploration.decode)
		case 6:
			v.Map = new(LiveMap)
			d.message(v.Map.decode)
		default:
			d.unknown()
		}
	}
}

// Verdict is the outcome of a check, over all cells of a tensor.
type Verdict struct {
	Pass                             bool
	Cells, Failed                    int
	MaxRatio, MaxAbs, MaxRel, MaxULP float64 // MaxRatio is the largest error / bound
	RelL2, LimitL2                   float64 // relative L2 error of all cells together, and what it may be
}

func (v *Verdict) encode(e *encoder) {
	e.bool(1, v.Pass)
	e.int(2, v.Cells)
	e.int(3, v.Failed)
	e.float(4, v.MaxRatio)
	e.float(5, v.MaxAbs)
	e.float(6, v.MaxRel)
	e.float(7, v.MaxULP)
	e.float(8, v.RelL2)
	e.float(9, v.LimitL2)
}

func (v *Verdict) decode(d *decoder) {
	for {
		tag, ok := d.more()
		if !ok {
			return
		}
		switch tag {
		case 1:
			v.Pass = d.bool()
		case 2:
			v.Cells = d.int()
		case 3:
			v.Failed = d.int()
		case 4:
			v.MaxRatio = d.float()
		case 5:
			v.MaxAbs = d.float()
		case 6:
			v.MaxRel = d.float()
		case 7:
			v.MaxULP = d.float()
		case 8:
			v.RelL2 = d.float()
		case 9:
			v.LimitL2 = d.float()
		default:
			d.unknown()
		}
	}
}

// Status describes the device process.
type Status struct {
	Backend, Device string
	InUse, Total    int // bytes on the device; Total is 0 where unknown
	Tensors         int
	Displays        int // bundles not fetched yet
	PID             int
	Running         string  // the op that runs; empty: none
	RunningFor      int     // ms
	Done            float64 // fraction of it, 0 where that is not known
	Waiting         int     // ops behind it
}

func (s *Status) encode(e *encoder) {
	e.str(1, s.Backend)
	e.str(2, s.Device)
	e.int(3, s.InUse)
	e.int(4, s.Total)
	e.int(5, s.Tensors)
	e.int(6, s.Displays)
	e.int(7, s.PID)
	e.str(8, s.Running)
	e.int(9, s.RunningFor)
	e.float(10, s.Done)
	e.int(11, s.Waiting)
}

func (s *Status) decode(d *decoder) {
	for {
		tag, ok := d.more()
		if !ok {
			return
		}
		switch tag {
		case 1:
			s.Backend = d.str()
		case 2:
			s.Device = d.str()
		case 3:
			s.InUse = d.int()
		case 4:
			s.Total = d.int()
		case 5:
			s.Tensors = d.int()
		case 6:
			s.Displays = d.int()
		case 7:
			s.PID = d.int()
		case 8:
			s.Running = d.str()
		case 9:
			s.RunningFor = d.int()
		case 10:
			s.Done = d.float()
		case 11:
			s.Waiting = d.int()
		default:
			d.unknown()
		}
	}
}

// Answer is one message of the device process. Code is OK, or Message says what went wrong.
type Answer struct {
	Code      Code
	Message   string
	Number    int
	Text      string
	Tensors   []Tensor
	DisplayID string
	Display   *Display
	Verdict   *Verdict
	Status    *Status
	Tile      *Tile
	Control   *Control
	DataLen   int // bytes of f32 that follow the frame
}

// Encode returns the frame's body.
func (a *Answer) Encode() []byte {
	e := &encoder{b: make([]byte, 0, 128)}
	e.int(1, int(a.Code))
	e.str(2, a.Message)
	e.int(3, a.Number)
	e.str(4, a.Text)
	for i := range a.Tensors {
		e.nested(5, a.Tensors[i].encode)
	}
	e.str(6, a.DisplayID)
	if a.Display != nil {
		e.nested(7, a.Display.encode)
	}
	if a.Verdict != nil {
		e.nested(8, a.Verdict.encode)
	}
	if a.Status != nil {
		e.nested(9, a.Status.encode)
	}
	e.int(10, a.DataLen)
	if a.Tile != nil {
		e.nested(11, a.Tile.encode)
	}
	if a.Control != nil {
		e.nested(12, a.Control.encode)
	}
	return e.b
}

// DecodeAnswer is the inverse of Encode.
func DecodeAnswer(b []byte) (Answer, error) {
	var a Answer
	d := &decoder{b: b}
	for {
		tag, ok := d.more()
		if !ok {
			return a, d.err()
		}
		switch tag {
		case 1:
			a.Code = Code(d.small())
		case 2:
			a.Message = d.str()
		case 3:
			a.Number = d.int()
		case 4:
			a.Text = d.str()
		case 5:
			var t Tensor
			d.message(t.decode)
			a.Tensors = append(a.Tensors, t)
		case 6:
			a.DisplayID = d.str()
		case 7:
			a.Display = new(Display)
			d.message(a.Display.decode)
		case 8:
			a.Verdict = new(Verdict)
			d.message(a.Verdict.decode)
		case 9:
			a.Status = new(Status)
			d.message(a.Status.decode)
		case 10:
			a.DataLen = d.int()
		case 11:
			a.Tile = new(Tile)
			d.message(a.Tile.decode)
		case 12:
			a.Control = new(Control)
			d.message(a.Control.decode)
		default:
			d.unknown()
		}
	}
}

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

func (t *Tensor) fields(c *codec) {
	c.int(1, &t.ID)
	c.str(2, &t.Name)
	c.ints(3, &t.Shape)
	c.strs(4, &t.Axes)
	c.str(5, &t.Made)
	c.int(6, &t.Cell)
	c.int(7, &t.Empty)
}

// Part is one representation of a display.
type Part struct {
	MIME string
	Data []byte
}

func (p *Part) fields(c *codec) {
	c.str(1, &p.MIME)
	c.bytes(2, &p.Data)
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
	Code        string   // Go that makes what is shown; empty: none
}

func (v *Display) fields(c *codec) {
	list(c, 1, &v.Parts)
	c.bytes(2, &v.Metadata)
	c.str(3, &v.UpdateID)
	c.bool(4, &v.Replaces)
	optional(c, 5, &v.Exploration)
	optional(c, 6, &v.Map)
	c.str(7, &v.Code)
}

// Verdict is the outcome of a check, over all cells of a tensor.
type Verdict struct {
	Pass                             bool
	Cells, Failed                    int
	MaxRatio, MaxAbs, MaxRel, MaxULP float64 // MaxRatio is the largest error / bound
	RelL2, LimitL2                   float64 // relative L2 error of all cells together, and what it may be
}

func (v *Verdict) fields(c *codec) {
	c.bool(1, &v.Pass)
	c.int(2, &v.Cells)
	c.int(3, &v.Failed)
	c.float(4, &v.MaxRatio)
	c.float(5, &v.MaxAbs)
	c.float(6, &v.MaxRel)
	c.float(7, &v.MaxULP)
	c.float(8, &v.RelL2)
	c.float(9, &v.LimitL2)
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

func (s *Status) fields(c *codec) {
	c.str(1, &s.Backend)
	c.str(2, &s.Device)
	c.int(3, &s.InUse)
	c.int(4, &s.Total)
	c.int(5, &s.Tensors)
	c.int(6, &s.Displays)
	c.int(7, &s.PID)
	c.str(8, &s.Running)
	c.int(9, &s.RunningFor)
	c.float(10, &s.Done)
	c.int(11, &s.Waiting)
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
	Finding   *Finding
	Call      *Call
	Model     *Model
	DataLen   int // bytes of f32 that follow the frame
}

// Encode returns the frame's body.
func (a *Answer) Encode() []byte { return encode(a) }

// DecodeAnswer is the inverse of Encode.
func DecodeAnswer(b []byte) (Answer, error) {
	var a Answer
	err := decode(b, &a)
	return a, err
}

func (a *Answer) fields(c *codec) {
	enum(c, 1, &a.Code)
	c.str(2, &a.Message)
	c.int(3, &a.Number)
	c.str(4, &a.Text)
	list(c, 5, &a.Tensors)
	c.str(6, &a.DisplayID)
	optional(c, 7, &a.Display)
	optional(c, 8, &a.Verdict)
	optional(c, 9, &a.Status)
	c.int(10, &a.DataLen)
	optional(c, 11, &a.Tile)
	optional(c, 12, &a.Control)
	optional(c, 13, &a.Finding)
	optional(c, 14, &a.Call)
	optional(c, 15, &a.Model)
}

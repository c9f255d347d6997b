package wire

// Kind is what a request asks for.
type Kind uint8

const (
	KindNone        Kind = iota
	KindHello            // first on a connection: Number is the Version. Answer: Number, Text (the backend)
	KindUpload           // Shape, Axes, DataLen bytes follow. Answer: the tensor
	KindLoad             // Path, Member, Axes (optional). Answer: the tensor
	KindGet              // Name. Answer: the tensor
	KindOnce             // Name, Hash. Answer: the tensor made under that name and hash, or none
	KindName             // IDs[0], Name, Hash. Answer: the tensor
	KindFree             // IDs, or Name
	KindList             // Answer: all named tensors, and this connection's unnamed ones
	KindRun              // Op, IDs, Params. Answer: the tensors it made
	KindDownload         // IDs[0]. Answer: DataLen bytes follow
	KindPicture          // IDs, Text (title), Labels, Picture. Answer: DisplayID
	KindCheck            // IDs[0], Labels. Answer: DisplayID, Verdict, Text (the report)
	KindShow             // Display. Answer: DisplayID
	KindDisplay          // Name is a display's ID. Answer: Display, which the device process then forgets
	KindStatus           // Answer: Status
	KindCell             // Number is the cell that runs from now on (the proxy tells)
	KindInterrupt        // the op that runs now fails
	KindShutdown         // the device process ends after the answer
	KindExplore          // IDs[0], Text (title), Labels, Controls. Answer: DisplayID
	KindRerun            // Number is an exploration, Controls its settings. Answer: Display
	KindRelease          // Number is an exploration or a live map, which ends
	KindCompare          // IDs[0] with IDs[1], Labels, Within. Answer: DisplayID, Verdict, Text (the report)
	KindMap              // IDs q, k or a matrix, Params, Map, Text (title), Labels, Log. Answer: DisplayID
	KindTile             // Number is a live map, Map one head of it. Answer: Tile; DataLen bytes follow
	KindOpenControl      // to the proxy: Name (the nonce), Controls[0]. Answer: Text, the model to show; none where no page shows it
	KindTurned           // to the proxy, after KindOpenControl. Answer, once a page has turned the control: Control; none where a page closed it
	kindEnd
)

// PictureStyle selects how KindPicture draws.
type PictureStyle uint8

const (
	StylePNG  PictureStyle = iota // labelled PNG and text/plain
	StyleHTML                     // go-echarts, text/html
)

// Request is one message of a client. Kind says which fields count.
type Request struct {
	Kind     Kind
	Number   int
	Name     string
	Hash     string
	Path     string // absolute
	Member   string
	Text     string
	IDs      []int
	Shape    []int
	Axes     []string
	Labels   []string // token labels
	Style    PictureStyle
	Op       Op
	Params   Params
	Display  *Display
	Controls []Control
	Within   float64 // absolute allowance of a comparison
	Map      *Map
	Log      bool // probabilities on a logarithmic scale
	DataLen  int  // bytes of f32 that follow the frame
}

// Encode returns the frame's body.
func (r *Request) Encode() []byte {
	e := &encoder{b: make([]byte, 0, 128)}
	e.int(1, int(r.Kind))
	e.int(2, r.Number)
	e.str(3, r.Name)
	e.str(4, r.Hash)
	e.str(5, r.Path)
	e.str(6, r.Member)
	e.str(7, r.Text)
	e.ints(8, r.IDs)
	e.ints(9, r.Shape)
	e.strs(10, r.Axes)
	e.strs(11, r.Labels)
	e.int(12, int(r.Style))
	e.int(13, int(r.Op))
	e.nested(14, r.Params.encode)
	e.int(15, r.DataLen)
	if r.Display != nil {
		e.nested(16, r.Display.encode)
	}
	for i := range r.Controls {
		e.nested(17, r.Controls[i].encode)
	}
	e.float(18, r.Within)
	if r.Map != nil {
		e.nested(19, r.Map.encode)
	}
	e.bool(20, r.Log)
	return e.b
}

// DecodeRequest is the inverse of Encode.
func DecodeRequest(b []byte) (Request, error) {
	var r Request
	d := &decoder{b: b}
	for {
		t, ok := d.more()
		if !ok {
			return r, d.err()
		}
		switch t {
		case 1:
			r.Kind = Kind(d.small())
		case 2:
			r.Number = d.int()
		case 3:
			r.Name = d.str()
		case 4:
			r.Hash = d.str()
		case 5:
			r.Path = d.str()
		case 6:
			r.Member = d.str()
		case 7:
			r.Text = d.str()
		case 8:
			r.IDs = d.ints()
		case 9:
			r.Shape = d.ints()
		case 10:
			r.Axes = d.strs()
		case 11:
			r.Labels = d.strs()
		case 12:
			r.Style = PictureStyle(d.small())
		case 13:
			r.Op = Op(d.small())
		case 14:
			d.message(r.Params.decode)
		case 15:
			r.DataLen = d.int()
		case 16:
			r.Display = new(Display)
			d.message(r.Display.decode)
		case 17:
			var c Control
			d.message(c.decode)
			r.Controls = append(r.Controls, c)
		case 18:
			r.Within = d.float()
		case 19:
			r.Map = new(Map)
			d.message(r.Map.decode)
		case 20:
			r.Log = d.bool()
		default:
			d.unknown()
		}
	}
}

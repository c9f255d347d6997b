package wire

// Kind is what a request asks for.
type Kind uint8

const (
	KindNone        Kind = iota
	KindHello            // first on a connection: Number is the Version, Name the token. Answer: Number, Text (the backend)
	KindUpload           // Shape, Axes, DataLen bytes follow. Answer: the tensor
	KindLoad             // Path, Member; with Shape, DataLen bytes follow: who asks has read the file. Answer: the tensor
	KindGet              // Name. Answer: the tensor
	KindOnce             // Name, Hash. Answer: the tensor made under that name and hash, or none
	KindName             // IDs[0], Name, Hash. Answer: the tensor
	KindFree             // IDs, or Name
	KindList             // Answer: all named tensors, and this connection's unnamed ones
	KindRun              // Op, IDs, Params. Answer: the tensors it made
	KindDownload         // IDs[0]. Answer: DataLen bytes follow
	KindPicture          // IDs, Text (title), Labels, Style, Draw. Answer: DisplayID
	KindCheck            // IDs[0], Labels, Draw. Answer: DisplayID, Verdict, Text (the report)
	KindShow             // Display. Answer: DisplayID
	KindDisplay          // Name is a display's ID. Answer: Display, which the device process then forgets
	KindStatus           // Answer: Status
	KindCell             // Number is the cell that runs from now on (the proxy tells)
	KindInterrupt        // the op that runs now fails, and so does what is being saved or restored
	KindShutdown         // the device process ends after the answer
	KindExplore          // IDs[0], Text (title), Labels, Controls, Expected. Answer: DisplayID
	KindRerun            // Number is an exploration, Controls its settings. Answer: Display
	KindRelease          // Number is an exploration or a live map, which ends
	KindCompare          // IDs[0] with IDs[1], Labels, Within, Draw. Answer: DisplayID, Verdict, Text (the report)
	KindMap              // IDs q, k or a matrix, Params, Map, Text (title), Labels, Log. Answer: DisplayID
	KindTile             // Number is a live map, Map one head of it. Answer: Tile; DataLen bytes follow
	KindOpenControl      // to the proxy: Name (the nonce), Controls[0]. Answer: Text, the model to show; none where no page shows it
	KindTurned           // to the proxy, after KindOpenControl. Answer, once a page has turned the control: Control; none where a page closed it
	KindDraw             // Draw, IDs, Text (title), Labels, Log. Answer: DisplayID
	KindAsk              // Question, IDs, Params; to go on after a call: Number, IDs[0]. Answer: Finding, Text (the report), DisplayID (empty: no picture); or Call, Tensors
	KindModel            // Path (a directory) or Name (of a repository in the Hugging Face cache) and Hash (its revision; empty: main). Answer: Model
	KindSave             // Path, Names (none: all that has a name). Answer: the tensors, and Number, the bytes of their values; without Path also Text, what a file says of them: who asks writes it
	KindRestore          // Path, Names (none: all that the file holds). Answer: the tensors. Without Path who asks has read the file: IDs, Names, Text (what it says of them), Member (its name); without IDs: are the Names free?
	kindEnd
)

// PictureStyle selects how KindPicture draws.
type PictureStyle uint8

const (
	StylePNG     PictureStyle = iota // labelled PNG and text/plain
	StyleHTML                        // go-echarts, text/html
	StyleGallery                     // text/html in which a click enlarges a panel
)

// Request is one message of a client. Kind says which fields count.
type Request struct {
	Kind     Kind
	Number   int
	Name     string
	Names    []string
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
	Draw     *Drawing
	Expected int // tensor that an exploration is to come to; 0: none
	Question *Question
	DataLen  int // bytes of f32 that follow the frame
}

// Encode returns the frame's body.
func (r *Request) Encode() []byte { return encode(r) }

// DecodeRequest is the inverse of Encode.
func DecodeRequest(b []byte) (Request, error) {
	var r Request
	err := decode(b, &r)
	return r, err
}

func (r *Request) fields(c *codec) {
	enum(c, 1, &r.Kind)
	c.int(2, &r.Number)
	c.str(3, &r.Name)
	c.str(4, &r.Hash)
	c.str(5, &r.Path)
	c.str(6, &r.Member)
	c.str(7, &r.Text)
	c.ints(8, &r.IDs)
	c.ints(9, &r.Shape)
	c.strs(10, &r.Axes)
	c.strs(11, &r.Labels)
	enum(c, 12, &r.Style)
	enum(c, 13, &r.Op)
	nested(c, 14, &r.Params)
	c.int(15, &r.DataLen)
	optional(c, 16, &r.Display)
	list(c, 17, &r.Controls)
	c.float(18, &r.Within)
	optional(c, 19, &r.Map)
	c.bool(20, &r.Log)
	optional(c, 21, &r.Draw)
	optional(c, 22, &r.Question)
	c.int(23, &r.Expected)
	c.strs(24, &r.Names)
}

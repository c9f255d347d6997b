package wire

// Model says where in the files of a model its attention lies.
type Model struct {
	Family            string // config.json's model_type
	Weights           string // the path that KindLoad takes, with the names below
	Hidden, Positions int
	Layers            []ModelLayer
}

func (m *Model) fields(c *codec) {
	c.str(1, &m.Family)
	c.str(2, &m.Weights)
	c.int(3, &m.Hidden)
	c.int(4, &m.Positions)
	list(c, 5, &m.Layers)
}

// ModelLayer is the attention of one layer. Layout is that of QKV, the one projection that makes queries, keys and
// values; without QKV there are Q, K and V. Rotation is the parameters of OpRoPE; its Rotary is 0 where nothing turns.
type ModelLayer struct {
	Heads, KVHeads, HeadDim int
	Scale                   float64
	Window                  int // 0: none
	Layout                  Layout
	QKV, Q, K, V, Out       ModelWeights
	Norm                    ModelNorm
	Rotation                Params
}

func (l *ModelLayer) fields(c *codec) {
	c.int(1, &l.Heads)
	c.int(2, &l.KVHeads)
	c.int(3, &l.HeadDim)
	c.float(4, &l.Scale)
	c.int(5, &l.Window)
	enum(c, 6, &l.Layout)
	nested(c, 7, &l.QKV)
	nested(c, 8, &l.Q)
	nested(c, 9, &l.K)
	nested(c, 10, &l.V)
	nested(c, 11, &l.Out)
	nested(c, 12, &l.Norm)
	nested(c, 13, &l.Rotation)
}

// ModelWeights names the tensors of x W^T + b.
type ModelWeights struct {
	Weight string // "": there is no such projection
	Bias   string // "": none
	InOut  bool   // the weight lies as [in, out]
}

func (w *ModelWeights) fields(c *codec) {
	c.str(1, &w.Weight)
	c.str(2, &w.Bias)
	c.bool(3, &w.InOut)
}

// ModelNorm names the tensors of what comes before the projections.
type ModelNorm struct {
	Weight string
	Bias   string // "": none
	RMS    bool
	Eps    float64
}

func (n *ModelNorm) fields(c *codec) {
	c.str(1, &n.Weight)
	c.str(2, &n.Bias)
	c.bool(3, &n.RMS)
	c.float(4, &n.Eps)
}

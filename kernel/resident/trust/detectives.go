package trust

import (
	"context"
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/attnb/attnb/reference"
	"github.com/attnb/attnb/reference/detect"
)

// maxRanked bounds the lines of a ranked table, and the bars of its picture.
const maxRanked = 8

// one is the matrix of a tensor that has one.
func one(name string, x reference.Heads) (*mat.Dense, error) {
	switch len(x) {
	case 0:
		return nil, nil
	case 1:
		return x[0], nil
	}
	return nil, fmt.Errorf("%s has %d matrices, it must be rows: [seq, hidden]", name, len(x))
}

func findLayout(ctx context.Context, c Case) (Outcome, error) {
	p, err := c.precision()
	if err != nil {
		return Outcome{}, err
	}
	rows, err := one("rows", c.tensor("rows"))
	if err != nil {
		return Outcome{}, err
	}
	merged, err := one("merged", c.tensor("merged"))
	if err != nil {
		return Outcome{}, err
	}
	kv := c.Params.KVHeads
	if kv == 0 {
		kv = c.Params.Heads
	}
	_, width := rows.Dims()
	blocks := c.Params.Heads + 2*kv
	if c.Params.Heads < 1 || kv < 1 || width%blocks != 0 {
		return Outcome{}, fmt.Errorf("hidden %d does not divide by %d heads + 2 * %d KV heads", width, c.Params.Heads, kv)
	}
	f, err := detect.Layout(ctx, rows, detect.Fused{Layout: reference.Layout(c.Params.Layout), Heads: c.Params.Heads, KVHeads: kv, Dim: width / blocks, Precision: p},
		detect.Parts{Q: c.tensor("q"), K: c.tensor("k"), V: c.tensor("v"), Context: c.tensor("context"), Merged: merged, Scale: c.Params.Scale, RoPE: c.RoPE})
	if err != nil {
		return Outcome{}, err
	}
	o := found(f.Faults, f.String())
	var fits, lines, labels []string
	var residuals []float64
	for _, x := range f.Fits {
		fits = append(fits, x.Arrangement.String())
	}
	for i, x := range f.Ranked[:min(maxRanked, len(f.Ranked))] {
		verdict := "does not fit"
		if x.Residual <= f.Floor {
			verdict = "fits"
		}
		lines = append(lines, fmt.Sprintf("%d %-10.2g %-12s %v", i+1, x.Residual, verdict, x.Arrangement))
		labels = append(labels, fmt.Sprintf("%d", i+1))
		residuals = append(residuals, x.Residual)
	}
	lines = append([]string{fmt.Sprintf("%d hypotheses by relative L2 residual; up to %.2g is rounding", len(f.Ranked), f.Floor)}, lines...)
	o.words("fits", fits...)
	o.fact("residual", f.Ranked[0].Residual)
	o.fact("floor", f.Floor)
	o.fact("margin", f.Margin)
	o.report("FindLayout", lines...)
	o.Picture = ranked("FindLayout: the hypotheses that come nearest", "rank", labels, residuals, f.Floor)
	return o, nil
}

func findOrder(_ context.Context, c Case) (Outcome, error) {
	p, err := c.precision()
	if err != nil {
		return Outcome{}, err
	}
	var flat []float64
	for _, m := range c.tensor("flat") {
		rows, _ := m.Dims()
		for i := range rows {
			flat = append(flat, m.RawRowView(i)...)
		}
	}
	f, err := detect.Order(c.tensor("x"), flat, detect.Axes(c.word("axes")), p)
	if err != nil {
		return Outcome{}, err
	}
	o := found(f.Faults, f.String())
	var fits, lines, labels []string
	var residuals []float64
	for _, a := range f.Fits {
		fits = append(fits, string(a))
	}
	for _, a := range []detect.Axes{detect.HeadsSeqDim, detect.SeqHeadsDim, detect.HeadsDimSeq, detect.SeqDimHeads, detect.DimHeadsSeq, detect.DimSeqHeads} {
		lines = append(lines, fmt.Sprintf("%-14s %.2g", a, f.Residuals[a]))
		labels, residuals = append(labels, string(a)), append(residuals, f.Residuals[a])
	}
	o.words("fits", fits...)
	o.fact("floor", f.Floor)
	o.report("FindOrder", append([]string{fmt.Sprintf("relative L2 residual of each order; up to %.2g is rounding", f.Floor)}, lines...)...)
	o.Picture = ranked("FindOrder: the orders of three axes", "order", labels, residuals, f.Floor)
	return o, nil
}

func findRoPE(ctx context.Context, c Case) (Outcome, error) {
	p, err := c.precision()
	if err != nil {
		return Outcome{}, err
	}
	var declared reference.RoPE
	if c.RoPE != nil {
		declared = *c.RoPE
	}
	f, err := detect.RoPE(ctx, c.tensor("before"), c.tensor("after"), declared, p)
	if err != nil {
		return Outcome{}, err
	}
	o := found(f.Faults, f.String())
	var fits, lines []string
	for i, r := range f.Fits {
		fits = append(fits, r.String())
		if i < maxRanked {
			lines = append(lines, r.String())
		}
	}
	if len(lines) > 0 {
		lines = append([]string{"explained on every element by:"}, lines...)
	}
	o.words("fits", fits...)
	o.words("undecided", f.Undecided...)
	o.fact("floor", f.Floor)
	if len(f.Fits) > 0 {
		r := f.Fits[0]
		o.words("pairing", r.Pairing.String())
		o.fact("rotary", float64(r.Rotary))
		o.words("spectrum", r.Spectrum)
		o.fact("frequencies", r.Frequency...)
		o.fact("positions", floats(r.Positions)...)
		o.fact("magnitude", r.Magnitude)
		o.words("angles", r.Angles.String())
	}
	o.report("FindRoPE", lines...)
	if declared.Rotary == 0 { // described as it is by the detective
		_, dim := c.tensor("before")[0].Dims()
		declared.Rotary, declared.Base = dim-dim%2, 1e4
	}
	o.Picture = rotationPicture(declared, f)
	return o, nil
}

func findMask(ctx context.Context, c Case) (Outcome, error) {
	p, err := c.precision()
	if err != nil {
		return Outcome{}, err
	}
	weights := c.tensor("p")
	rows, keys := weights[0].Dims()
	rule, err := c.rule(len(weights), rows, keys)
	if err != nil {
		return Outcome{}, err
	}
	f, err := detect.Mask(ctx, c.tensor("q"), c.tensor("k"), weights, rule, p)
	if err != nil {
		return Outcome{}, err
	}
	o := ofMask(f)
	o.report("FindMask", maskLines(f)...)
	o.Picture, err = maskPicture(ctx, "FindMask", c.tensor("q"), c.tensor("k"), weights, rule)
	return o, err
}

func ofMask(f detect.MaskFinding) Outcome {
	o := found(f.Faults, f.String())
	o.fact("scale", f.Scale)
	o.fact("softcap", f.Softcap)
	o.fact("slopes", f.Slopes...)
	o.fact("sinks", f.Sinks...)
	o.fact("first visible", f.Low[:]...)
	o.fact("last visible", f.High[:]...)
	o.fact("empty rows", float64(f.EmptyRows))
	o.words("empty", f.Empty.String())
	o.fact("hidden keys", floats(f.HiddenKeys)...)
	o.fact("documents", floats(f.Documents)...)
	o.words("undecided", f.Undecided...)
	o.fact("floor", f.Floor)
	return o
}

func maskLines(f detect.MaskFinding) []string {
	lines := []string{fmt.Sprintf("%d rows see nothing; they hold %v", f.EmptyRows, f.Empty)}
	if f.EmptyRows == 0 {
		lines = []string{"every row sees a key"}
	}
	if len(f.HiddenKeys) > 0 {
		lines = append(lines, fmt.Sprintf("keys that no row sees: %v", f.HiddenKeys))
	}
	if len(f.Documents) > 0 {
		lines = append(lines, fmt.Sprintf("documents begin at keys %v", f.Documents))
	}
	return append(lines, fmt.Sprintf("a log-probability may be off by %.2g by rounding", f.Floor))
}

func checkCache(ctx context.Context, c Case) (Outcome, error) {
	p, err := c.precision()
	if err != nil {
		return Outcome{}, err
	}
	f, err := detect.Cache(ctx, c.tensor("rows"), c.tensor("cache"), c.RoPE, p)
	if err != nil {
		return Outcome{}, err
	}
	o := found(f.Faults, f.String())
	rows, positions := make([]float64, len(f.Slots)), make([]float64, len(f.Slots))
	var odd []string
	for i, s := range f.Slots {
		rows[i], positions[i] = float64(s.Row), float64(s.Position)
		switch {
		case s.Row == i && (c.RoPE == nil || !s.Known || s.Position == c.RoPE.Position(i)):
		case s.Row < 0:
			odd = append(odd, fmt.Sprintf("slot %d: none of the rows", i))
		default:
			odd = append(odd, fmt.Sprintf("slot %d: row %d at position %d", i, s.Row, s.Position))
		}
	}
	if over := len(odd) - maxRanked; over > 0 {
		odd = append(odd[:maxRanked], fmt.Sprintf("... %d slots more", over))
	}
	o.fact("rows", rows...)
	o.fact("positions", positions...)
	o.report("CheckCache", odd...)
	var position func(row int) int
	if c.RoPE != nil {
		position = c.RoPE.Position
	}
	o.Picture = cachePicture(f, position)
	return o, nil
}

// turns are the faults of rows that were rotated twice, or never where others were, by settings "turns": rows, and how often.
func (c Case) turns() (faults detect.Faults) {
	var never, once, more, total int
	firstNever, firstMore := 0, 0
	for _, s := range c.Settings {
		if s.Name != "turns" || len(s.Numbers) != 2 || s.Numbers[0] == 0 {
			continue
		}
		rows := int(s.Numbers[0])
		switch times := s.Numbers[1]; {
		case times == 0:
			if never += rows; never == rows {
				firstNever = total
			}
		case times == 1:
			once += rows
		default:
			if more += rows; more == rows {
				firstMore = total
			}
		}
		total += rows
	}
	if more > 0 {
		faults = append(faults, detect.Fault{Kind: detect.TwiceTurned, Detail: fmt.Sprintf("%d of %d rows, the first in slot %d, were rotated more than once", more, total, firstMore),
			Fix: "rotate before caching, or after reading, not both"})
	}
	if never > 0 && once+more > 0 {
		faults = append(faults, detect.Fault{Kind: detect.NeverTurned, Detail: fmt.Sprintf("%d of %d rows, the first in slot %d, were not rotated, as the others were", never, total, firstNever),
			Fix: "rotate each row before it is cached"})
	}
	return faults
}

// checkWrites takes the writes as settings "write" with slot, rows and position, and "trim" with the length.
func checkWrites(_ context.Context, c Case) (Outcome, error) {
	var writes []detect.Write
	for _, s := range c.Settings {
		n := s.Numbers
		switch {
		case s.Name == "write" && len(n) == 3:
			writes = append(writes, detect.Write{At: int(n[0]), Rows: int(n[1]), Position: int(n[2])})
		case s.Name == "trim" && len(n) == 1:
			writes = append(writes, detect.Write{At: int(n[0]), Trim: true})
		}
	}
	f, err := detect.Slots(writes)
	if err != nil {
		return Outcome{}, err
	}
	f.Faults = append(f.Faults, c.turns()...)
	o := found(f.Faults, f.String())
	o.fact("length", float64(f.Length))
	o.fact("holes", floats(f.Holes)...)
	o.fact("overwritten", floats(f.Overwritten)...)
	o.report("CheckWrites")
	o.Picture = writesPicture(writes, f.Length)
	return o, nil
}

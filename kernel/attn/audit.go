package attn

import "github.com/attnb/attnb/kernel/wire"

// Departure is how far a stage is from float64.
type Departure struct {
	Pass           bool
	Ratio          float64 // largest error / bound
	RelL2, LimitL2 float64 // relative L2 error, and what it may be
}

// AuditedStage is one call of a chain.
type AuditedStage struct {
	Name, Shape string
	Enters      Departure // the call in float64 on the resident inputs, against its resident output
	Carried     Departure // the chain in float64 from its start
	// Of a tensor that [Stage] gave: its name, the call in float64 on what was given before it, against it; and how far it is from the
	// resident one.
	Expected      string
	Theirs, Apart Departure
}

// AuditFinding is what Audit found.
type AuditFinding struct {
	Diagnosis
	First  string // the first stage that departs; "": none
	Stages []AuditedStage
}

// AuditOption is a setting of Audit.
type AuditOption struct{ add func(*wire.Request) }

// Stage gives a tensor from elsewhere for a stage of the chain: of is this kernel's tensor, expected what a framework has there.
func Stage(of, expected Tensor) AuditOption {
	return AuditOption{func(r *wire.Request) {
		give(r, "stage", of)
		give(r, "expected", expected)
	}}
}

// Audit replays the calls that made x one by one in float64, and shows for each the error that enters there alone and the error carried
// over, against what f32 arithmetic may be off by. It names the first stage that departs. A tensor on the way that is gone is
// computed again.
//
// Tensors from elsewhere are audited by the same chain: where [Stage] gives them, each is compared with the float64 value of its
// stage on the nearest tensors given before it, which names the framework's own stage that departs.
//
//	attn.Audit(out, attn.Stage(k, hfK), attn.Stage(p, hfProbabilities))
func Audit(x Tensor, options ...AuditOption) AuditFinding {
	r := about("audit")
	give(&r, "out", x)
	for _, o := range options {
		if o.add != nil {
			o.add(&r)
		}
	}
	d, f := find("Audit", r, nil)
	a := AuditFinding{Diagnosis: d, First: f.word("first")}
	for _, s := range f {
		if s.Name != "stage" || len(s.Words) < 2 || len(s.Numbers) < 8 {
			continue
		}
		stage := AuditedStage{Name: s.Words[0], Shape: s.Words[1], Enters: departure(s.Numbers), Carried: departure(s.Numbers[4:])}
		if len(s.Words) > 2 && len(s.Numbers) == 16 {
			stage.Expected, stage.Theirs, stage.Apart = s.Words[2], departure(s.Numbers[8:]), departure(s.Numbers[12:])
		}
		a.Stages = append(a.Stages, stage)
	}
	return a
}

func departure(n []float64) Departure { return Departure{n[0] != 0, n[1], n[2], n[3]} }

// Rung is a cell in one number format.
type Rung struct {
	Format string // "float64", "f32", "f32, f32 angles", "TF32", "fp16", "bf16"
	Value  float64
	Error  float64 // off float64
}

// LadderFinding is what Ladder found. It passes where the resident value is within the bound of f32 arithmetic.
type LadderFinding struct {
	Diagnosis
	Rungs        []Rung  // float64 first
	Error, Bound float64 // of the resident value
	Place        string  // between which rungs the error, or the tolerance asked about, lies
}

// Ladder computes one cell of scores or of a context in float64, f32, f32 with f32 angles, TF32, fp16 and bf16, rounding after every
// operation, and shows what each stage changed. head, row and column count from 0. It says which of these formats could have made the error that the tensor has there, or one of
// the size off, as that at which a report fails.
func Ladder(x Tensor, head, row, column int, off ...float64) LadderFinding {
	r := about("ladder")
	give(&r, "x", x)
	set(&r, "cell", numbers(head, row, column))
	if len(off) > 0 {
		set(&r, "off", off[:1])
	}
	d, f := find("Ladder", r, nil)
	out := LadderFinding{Diagnosis: d, Place: f.word("place")}
	for _, s := range f {
		if s.Name == "rung" && len(s.Words) == 1 && len(s.Numbers) == 2 {
			out.Rungs = append(out.Rungs, Rung{s.Words[0], s.Numbers[0], s.Numbers[1]})
		}
	}
	if n := f.of("error").Numbers; len(n) == 2 {
		out.Error, out.Bound = n[0], n[1]
	}
	return out
}

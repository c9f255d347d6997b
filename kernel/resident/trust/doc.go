// Package trust answers questions about tensors: which layout, rotation or mask explains them, whether a law holds, what a cell
// is in each number format, what lies in a cache. It turns tensors and declarations into what package detect takes, and what that
// found into a finding, a report and a picture. It knows no server and no device.
package trust

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/reference"
	"github.com/attnb/attnb/reference/detect"
	"github.com/attnb/attnb/viz"
)

// Tensor is an input by its role, heads first.
type Tensor struct {
	Role  string
	Name  string // what messages call it
	Heads reference.Heads
	Shape []int
	Axes  []string
}

// Case is a question with what it is about.
type Case struct {
	Topic    string
	Tensors  []Tensor
	Params   wire.Params // the declaration
	RoPE     *reference.RoPE
	Settings []wire.Fact
	// Call runs the function in question; nil where the topic needs none.
	Call func(tensors []reference.Heads, numbers []int) (reference.Heads, error)
}

// Outcome is a finding with its report, and a picture where one helps.
type Outcome struct {
	wire.Finding
	Report  string
	Picture viz.Drawable
}

// topic is one kind of question.
type topic struct {
	name   string   // of the call in a cell
	needs  []string // roles that must be there
	takes  []string // roles that may be
	answer func(context.Context, Case) (Outcome, error)
}

// variant are the tensors that a rule of attention may be declared with.
var variant = []string{wire.ExtraBias, wire.ExtraAllowed, wire.ExtraSinks}

var topics = map[string]topic{
	"layout": {"FindLayout", []string{"rows"}, []string{"q", "k", "v", "context", "merged"}, findLayout},
	"order":  {"FindOrder", []string{"x", "flat"}, nil, findOrder},
	"rope":   {"FindRoPE", []string{"before", "after"}, nil, findRoPE},
	"mask":   {"FindMask", []string{"q", "k", "p"}, variant, findMask},
	"cache":  {"CheckCache", []string{"rows", "cache"}, nil, checkCache},
	"writes": {"CheckWrites", nil, nil, checkWrites},

	"norms":       {"NormsKept", []string{"before", "after"}, nil, normsKept},
	"sums":        {"RowsSum", []string{"p"}, nil, rowsSum},
	"no future":   {"NoFuture", []string{"p"}, variant, noFuture},
	"probe":       {"Probe", nil, variant, probe},
	"future":      {"FutureUnseen", nil, variant, futureUnseen},
	"permutation": {"HeadsPermute", nil, nil, headsPermute},
	"decode":      {"PrefillIsDecode", nil, nil, prefillIsDecode},
	"distance":    {"RelativeOnly", nil, nil, relativeOnly},
}

// Name is what a cell calls the topic; empty: there is none of that name.
func Name(of string) string { return topics[of].name }

// Roles refuses tensors of other roles than the topic's, or too few of them.
func Roles(of string, roles []string) error {
	t := topics[of]
	for i, r := range roles {
		if !slices.Contains(t.needs, r) && !slices.Contains(t.takes, r) || slices.Contains(roles[:i], r) {
			return fmt.Errorf("a tensor has no place as %q", r)
		}
	}
	for _, r := range t.needs {
		if !slices.Contains(roles, r) {
			return fmt.Errorf("needs %s", r)
		}
	}
	return nil
}

// Answer answers a question whose roles are right. It ends early when ctx does, and tells what [detect.WithProgress] put there.
func Answer(ctx context.Context, c Case) (Outcome, error) {
	o, err := topics[c.Topic].answer(ctx, c)
	return o, plainly(err)
}

// plainly takes from an error what the user did not call: the names of packages and of their functions.
func plainly(err error) error {
	var d *detect.Error
	var r *reference.Error
	switch {
	case errors.As(err, &d):
		return fmt.Errorf("%w: %s", d.Kind, d.Detail)
	case errors.As(err, &r):
		return fmt.Errorf("%w: %s", r.Kind, r.Detail)
	}
	return err
}

// tensor is the input of a role, nil where it was not given.
func (c Case) tensor(role string) reference.Heads {
	for _, t := range c.Tensors {
		if t.Role == role {
			return t.Heads
		}
	}
	return nil
}

// numbers are those of a setting, nil where it was not given.
func (c Case) numbers(name string) []float64 {
	for _, f := range c.Settings {
		if f.Name == name {
			return f.Numbers
		}
	}
	return nil
}

func (c Case) number(name string) float64 {
	if n := c.numbers(name); len(n) > 0 {
		return n[0]
	}
	return 0
}

func (c Case) word(name string) string {
	for _, f := range c.Settings {
		if f.Name == name && len(f.Words) > 0 {
			return f.Words[0]
		}
	}
	return ""
}

// precision is what the data went through.
func (c Case) precision() (detect.Precision, error) {
	switch w := c.word("precision"); w {
	case "", "f32":
		return detect.Float32, nil
	case "f64":
		return detect.Float64, nil
	case "tf32":
		return detect.TF32, nil
	case "fp16":
		return detect.Float16, nil
	case "bf16":
		return detect.BFloat16, nil
	default:
		return 0, fmt.Errorf("no precision is called %q: f32, f64, tf32, fp16 or bf16", w)
	}
}

// found is the outcome of a detective.
func found(faults detect.Faults, sentence string) Outcome {
	o := Outcome{Finding: wire.Finding{Pass: len(faults) == 0, Sentence: sentence}}
	for _, f := range faults {
		o.Faults = append(o.Faults, wire.Fault{Kind: string(f.Kind), Detail: f.Detail, Fix: f.Fix})
	}
	return o
}

func (o *Outcome) fact(name string, numbers ...float64) {
	o.Facts = append(o.Facts, wire.Fact{Name: name, Numbers: numbers})
}

func (o *Outcome) words(name string, words ...string) {
	o.Facts = append(o.Facts, wire.Fact{Name: name, Words: words})
}

// report puts a verdict and lines under it.
func (o *Outcome) report(of string, lines ...string) {
	verdict := "pass"
	if !o.Pass {
		verdict = "FAIL"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s: %s\n", of, verdict, strings.ReplaceAll(o.Sentence, "\n", "\n  "))
	for _, l := range lines {
		fmt.Fprintf(&b, "  %s\n", l)
	}
	o.Report = b.String()
}

func floats(of []int) []float64 {
	out := make([]float64, len(of))
	for i, n := range of {
		out[i] = float64(n)
	}
	return out
}

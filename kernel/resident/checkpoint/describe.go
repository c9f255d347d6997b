package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/tensorfile"
)

// The keys of a file's metadata: the description, and the SHA-256 of all bytes of the file, in hex, where those of the sum itself are noSeal.
const (
	keyTensors = "attnb"
	keySeal    = "sha256"
	version    = 1
)

var noSeal = strings.Repeat("0", 2*sha256.Size)

// description is what the metadata say.
type description struct {
	Version int              `json:"version"`
	Tensors map[string]entry `json:"tensors"`
}

// entry is what a file says of a tensor besides name, shape and values.
type entry struct {
	Axes        []string    `json:"axes"`
	Quantity    string      `json:"quantity,omitempty"`    // scores or probabilities; else any values
	Mask        *mask       `json:"mask,omitempty"`        // of scores: not applied yet; of probabilities: applied
	Allowed     *store.Kept `json:"allowed,omitempty"`     // of probabilities: applied
	Softcap     float64     `json:"softcap,omitempty"`     // of scores: not applied yet
	Slopes      []float64   `json:"slopes,omitempty"`      // the same, one a head
	Empty       int         `json:"empty_rows,omitempty"`  // rows that saw nothing
	Declaration string      `json:"declaration,omitempty"` // hash of the one that attn.Once made it by
	Made        []string    `json:"made_by"`               // the steps, in words

	meta store.Meta
}

// mask is a cudaops.Mask under names that stay.
type mask struct {
	Causal    bool  `json:"causal,omitempty"`
	Diagonal  int   `json:"diagonal,omitempty"`
	Window    int   `json:"window,omitempty"`
	PadLeft   int   `json:"pad_left,omitempty"`
	PadRight  int   `json:"pad_right,omitempty"`
	Documents []int `json:"documents,omitempty"`
}

var quantities = map[string]store.Quantity{"": store.Values, "scores": store.Scores, "probabilities": store.Probabilities}

func entryOf(x store.Named, made []string) entry {
	e := entry{Axes: x.Axes, Allowed: x.Allowed.Keep(), Softcap: x.Carry.Softcap, Slopes: x.Carry.Slopes, Empty: x.Empty, Declaration: x.Hash}
	for words, q := range quantities {
		if q == x.Quantity {
			e.Quantity = words
		}
	}
	if m := mask(x.Mask); m.Causal || m.Diagonal != 0 || !x.Mask.Plain() {
		e.Mask = &m
	}
	for _, line := range made {
		e.Made = append(e.Made, oneLine(line))
	}
	return e
}

// Limits of what a file may say.
const (
	maxLine        = 300 // bytes of a step
	maxLines       = 64
	maxDeclaration = 128
)

// oneLine is text without control characters, and not too long.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
	if len(text) > maxLine {
		text = strings.ToValidUTF8(text[:maxLine], "")
	}
	return text
}

// encode is the inverse of decode.
func encode(tensors map[string]entry) (string, error) {
	text, err := json.Marshal(description{version, tensors})
	return string(text), err
}

// unsealed is the header of a file whose sum is not known yet.
func unsealed(text string, arrays []tensorfile.SafeArray) ([]byte, error) {
	return tensorfile.SafeHeader(map[string]string{keyTensors: text, keySeal: noSeal}, arrays)
}

// sealAt is where in a header the sum stands, or -1. No other place looks like it: a quotation mark in a string has a \ before it.
func sealAt(header []byte, seal string) int {
	key := `"` + keySeal + `":"`
	at := bytes.Index(header, []byte(key+seal+`"`))
	if at < 0 {
		return -1
	}
	return at + len(key)
}

// begun is the sum of a file's header, and what that of the whole file is to be.
func begun(f *tensorfile.Safe) (sum hash.Hash, seal string, err error) {
	seal = f.Metadata[keySeal]
	at := -1
	if len(seal) == len(noSeal) {
		at = sealAt(f.Header, seal)
	}
	if f.Metadata[keyTensors] == "" || at < 0 {
		return nil, "", errors.New("no checkpoint: attn.Load reads arrays of such a file")
	}
	sum = sha256.New()
	sum.Write(f.Header[:at])
	sum.Write([]byte(noSeal))
	sum.Write(f.Header[at+len(noSeal):])
	return sum, seal, nil
}

func sealed(sum hash.Hash, seal string) bool { return hex.EncodeToString(sum.Sum(nil)) == seal }

// decode reads the description of a file's arrays, of which each must have one that fits it, and there may be no other.
func decode(text string, arrays []tensorfile.SafeArray) (map[string]entry, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	var all description
	if err := d.Decode(&all); err != nil {
		return nil, errors.New("its description is malformed")
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("its description is malformed")
	}
	switch {
	case all.Version != version:
		return nil, fmt.Errorf("a checkpoint of version %d, this program reads version %d", all.Version, version)
	case len(arrays) == 0:
		return nil, errors.New("it holds no tensors")
	case len(all.Tensors) != len(arrays):
		return nil, fmt.Errorf("it describes %d tensors and holds %d", len(all.Tensors), len(arrays))
	}
	for _, a := range arrays {
		e, ok := all.Tensors[a.Name]
		if !ok {
			return nil, fmt.Errorf("it holds %.40q and does not describe it", a.Name)
		}
		if err := e.check(a); err != nil {
			return nil, fmt.Errorf("%.40q: %w", a.Name, err)
		}
		all.Tensors[a.Name] = e
	}
	return all.Tensors, nil
}

// check refuses what does not fit an array, and sets meta.
func (e *entry) check(a tensorfile.SafeArray) error {
	if err := store.CheckName(a.Name); err != nil {
		return err
	}
	if len(a.Shape) == 0 {
		return errors.New("a scalar")
	}
	if err := store.CheckAxes(a.Shape, e.Axes); err != nil {
		return err
	}
	m := store.Meta{Shape: a.Shape, Axes: e.Axes, Carry: store.Carried{Softcap: e.Softcap, Slopes: e.Slopes}, Empty: e.Empty}
	if e.Mask != nil {
		m.Mask = cudaops.Mask(*e.Mask)
	}
	var ok bool
	if m.Quantity, ok = quantities[e.Quantity]; !ok {
		return fmt.Errorf("quantity %.40q", e.Quantity)
	}
	h, s, t := store.Fold(a.Shape)
	if err := (cudaops.Variant{Softcap: e.Softcap, Slopes: e.Slopes}).Check(m.Mask, h, t); err != nil {
		return err
	}
	// The diagonal goes with the rows also where nothing is hidden.
	if err := (cudaops.Variant{}).Check(cudaops.Mask{Causal: true, Diagonal: m.Mask.Diagonal}, h, t); err != nil {
		return err
	}
	var err error
	if m.Allowed, err = e.Allowed.Allowed(t); err != nil {
		return err
	}
	switch {
	case e.Empty < 0 || e.Empty > h*s:
		return fmt.Errorf("%d empty rows of %d", e.Empty, h*s)
	case len(e.Declaration) > maxDeclaration:
		return errors.New("the hash of its declaration is too long")
	case len(e.Made) > maxLines:
		return fmt.Errorf("made in %d lines, at most %d", len(e.Made), maxLines)
	}
	for i, line := range e.Made {
		e.Made[i] = oneLine(line)
	}
	e.meta = m
	return nil
}

// past is the steps of what was computed; of what was brought there are none.
func (e *entry) past() []string {
	if len(e.Made) < 2 {
		return nil
	}
	return e.Made
}

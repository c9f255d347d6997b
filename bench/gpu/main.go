//go:build cuda

// Command gpu measures every op on a GPU against the floor that the hardware sets and, where torch is installed, against
// PyTorch's best f32 path on the same inputs, and stores one JSON file.
//
//	make bench-gpu
//
// Inputs and sampled rows are computed alike here and in bench/torch_peer.py, from a seed, so that nothing but numbers passes
// between the two. Errors are relative L2 against float64 over the sampled rows.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/cuda"
)

// report is what is stored.
type report struct {
	GPU     string  `json:"gpu"`
	Driver  string  `json:"driver"`
	Fatbin  string  `json:"fatbin"`
	Commit  string  `json:"commit"`
	Date    string  `json:"date"`
	CopyTBs float64 `json:"copy_tb_s"`
	Torch   string  `json:"torch,omitempty"`
	Limit   float64 `json:"fp16x3_tflop_s,omitempty"` // of three fp16 products by the units and highest clock, the floor of rows over sizes
	Rows    []row   `json:"rows"`
}

// row is one op at one shape. A field that does not apply is left out.
type row struct {
	Op         string  `json:"op"`
	Path       string  `json:"path"`
	Input      string  `json:"input,omitempty"`
	H          int     `json:"H,omitempty"`
	KV         int     `json:"KV,omitempty"`
	D          int     `json:"d,omitempty"`
	S          int     `json:"S,omitempty"`
	T          int     `json:"T,omitempty"`
	Offset     int     `json:"offset,omitempty"`
	Causal     bool    `json:"causal,omitempty"`
	Sets       int     `json:"sets,omitempty"` // input sets that the runs rotate among
	Side       int     `json:"side,omitempty"` // of a pooled view
	Few        bool    `json:"few,omitempty"`  // one of many sizes: few samples, and fewer paths of PyTorch
	MS         float64 `json:"ms"`
	Peer       string  `json:"peer,omitempty"`
	PeerMS     float64 `json:"peer_ms,omitempty"`
	Ratio      float64 `json:"ratio,omitempty"`
	FloorMS    float64 `json:"floor_ms,omitempty"`
	FloorShare float64 `json:"floor_share,omitempty"`
	TBs        float64 `json:"tb_s,omitempty"`
	TFLOPs     float64 `json:"tflops,omitempty"`
	RelL2      float64 `json:"rel_l2"`
	PeerRelL2  float64 `json:"peer_rel_l2,omitempty"`
	MaxRel     float64 `json:"max_rel,omitempty"` // the largest relative error of a cell
	PeerMaxRel float64 `json:"peer_max_rel,omitempty"`
	AllMaxRel  float64 `json:"all_max_rel,omitempty"` // the same over all cells, where float64 took the GPU
	PeakBytes  int64   `json:"peak_bytes,omitempty"`  // in use, for an append that grows; of the largest allocation, for a pooled view

	Picture []float32 `json:"picture,omitempty"` // for the peer to compare with float64; not stored
}

func main() {
	ordinal := flag.Int("gpu", 0, "number of the `GPU`")
	only := flag.String("only", "", "run only the cases whose names begin with one of this comma-separated `list`")
	out := flag.String("out", filepath.Join("bench", "results"), "`directory` for the JSON file")
	peer := flag.String("peer", filepath.Join("bench", "torch_peer.py"), "`script` that measures PyTorch; empty: none")
	way := flag.String("products", "", "how products are computed: `auto`, ffma or fp16x3")
	sizes := flag.Bool("scaling", false, "measure each op over four decades of sizes instead")
	commit := flag.String("commit", "", "commit `hash` to name; empty: as built")
	flag.Parse()
	if err := run(*ordinal, *only, *way, *out, *peer, *commit, *sizes); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ordinal int, only, way, out, peer, commit string, sizes bool) error {
	products, err := cuda.ParseProducts(way)
	if err != nil {
		return err
	}
	backend, err := cuda.Open(ordinal, cuda.Options{Products: products})
	if err != nil {
		return err
	}
	b := backend.(*cuda.Backend)
	facts, err := b.Facts()
	if err != nil {
		return err
	}
	r := report{
		GPU: facts.GPU, Driver: facts.Driver, Fatbin: facts.Kernels, Commit: commit,
		Date: time.Now().UTC().Format(time.RFC3339),
	}
	if r.Commit == "" {
		r.Commit = builtFrom()
	}
	m := &meter{b: b, d: cudaops.NewDevice(backend), facts: facts, forced: products != cuda.ProductsAuto, samples: samples}
	if m.copyRate, err = m.copySpeed(); err != nil {
		return err
	}
	r.CopyTBs = m.copyRate / 1e12
	fmt.Printf("%s, %s, copy %.3f TB/s, FFMA %.1f TFLOP/s\n", facts.GPU, facts.Driver, r.CopyTBs, facts.FFMA/1e12)
	all := cases()
	if sizes {
		all, m.samples = scalingCases(), fewSamples
		r.Limit = tensorLimit(facts) / 1e12
	}
	for _, c := range all {
		if !chosen(only, c[0].row) {
			continue
		}
		rows, err := m.measure(c...)
		if err != nil {
			return fmt.Errorf("%s: %w", c[0].row.label(), err)
		}
		for _, row := range rows {
			fmt.Println(row.line())
		}
		r.Rows = append(r.Rows, rows...)
	}
	if err := m.d.Close(); err != nil {
		return err
	}
	if peer != "" {
		if err := r.addPeers(peer); err != nil {
			fmt.Fprintln(os.Stderr, "bench: no PyTorch figures:", err)
		}
	}
	fmt.Println()
	for _, row := range r.Rows {
		fmt.Println(row.line())
	}
	if err := r.store(out, sizes); err != nil || sizes {
		return err
	}
	fmt.Println()
	if fell := judged(r.Rows); fell > 0 {
		return fmt.Errorf("%d rows fall short of what they must reach", fell)
	}
	return nil
}

// chosen reports whether the name of a row begins with one of a list.
func chosen(only string, r row) bool {
	for _, name := range strings.Split(only, ",") {
		if strings.HasPrefix(r.label(), name) {
			return true
		}
	}
	return false
}

// builtFrom is the commit that the program was built from.
func builtFrom() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	commit := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value + commit
		case s.Key == "vcs.modified" && s.Value == "true":
			commit += "+"
		}
	}
	return commit
}

// addPeers has PyTorch measure the same rows.
func (r *report) addPeers(script string) error {
	in, err := json.Marshal(r.Rows)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	cmd := exec.Command("python3", script)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &out, os.Stderr
	if err := cmd.Run(); err != nil {
		return err
	}
	var answer struct {
		Torch string `json:"torch"`
		Rows  []struct {
			Peer   string  `json:"peer"`
			MS     float64 `json:"ms"`
			RelL2  float64 `json:"rel_l2"`
			MaxRel float64 `json:"max_rel"`
			Ours   float64 `json:"ours_max_rel"`
		} `json:"rows"`
	}
	if err := json.Unmarshal(out.Bytes(), &answer); err != nil {
		return err
	}
	if len(answer.Rows) != len(r.Rows) {
		return fmt.Errorf("%d rows from PyTorch, want %d", len(answer.Rows), len(r.Rows))
	}
	r.Torch = answer.Torch
	for i, a := range answer.Rows {
		row := &r.Rows[i]
		row.Picture = nil
		if a.Peer == "" {
			continue
		}
		row.AllMaxRel = a.Ours
		row.Peer, row.PeerMS, row.PeerRelL2, row.PeerMaxRel, row.Ratio = a.Peer, a.MS, a.RelL2, a.MaxRel, a.MS/row.MS
	}
	return nil
}

func (r *report) store(dir string, sizes bool) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	gpu := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(r.GPU, "NVIDIA "), " ", "-"))
	name := filepath.Join(dir, gpu+"-"+strings.NewReplacer(":", "", "-", "").Replace(r.Date))
	if sizes {
		name += "-scaling"
	}
	name += ".json"
	fmt.Println("stored", name)
	return os.WriteFile(name, append(text, '\n'), 0o644)
}

func (r row) label() string {
	s := r.Op
	for _, f := range []struct {
		name string
		v    int
	}{{"H", r.H}, {"KV", r.KV}, {"d", r.D}, {"S", r.S}, {"T", r.T}, {"offset", r.Offset}} {
		if f.v != 0 {
			s += fmt.Sprintf(" %s %d", f.name, f.v)
		}
	}
	if r.Causal {
		s += " causal"
	}
	if r.Input != "" {
		s += " " + r.Input
	}
	return s
}

func (r row) line() string {
	s := fmt.Sprintf("%-46s %10.4f ms", r.label(), r.MS)
	if r.Path != "" {
		s += "  " + r.Path
	}
	if r.TBs != 0 {
		s += fmt.Sprintf("  %6.3f TB/s", r.TBs)
	}
	if r.TFLOPs != 0 {
		s += fmt.Sprintf("  %6.2f TFLOP/s", r.TFLOPs)
	}
	s += fmt.Sprintf("  floor %5.1f%%  error %.2e", 100*r.FloorShare, r.RelL2)
	if r.MaxRel != 0 {
		s += fmt.Sprintf("  largest %.2e", r.MaxRel)
	}
	if r.PeakBytes != 0 {
		s += fmt.Sprintf("  %.1f MB", float64(r.PeakBytes)/1e6)
	}
	if r.Peer != "" {
		s += fmt.Sprintf("  %s %.4f ms, error %.2e, ratio %.2f", r.Peer, r.PeerMS, r.PeerRelL2, r.Ratio)
	}
	if r.PeerMaxRel != 0 {
		s += fmt.Sprintf(", largest %.2e", r.PeerMaxRel)
	}
	if r.AllMaxRel != 0 {
		s += fmt.Sprintf("; ours over all cells %.2e", r.AllMaxRel)
	}
	return s
}

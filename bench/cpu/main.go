// Command cpu measures the ops of the host backend next to PyTorch on the same cores, in one run: it prints a table, leaves a JSON file,
// and exits with status 1 where a row falls short of what it must reach.
//
//	go run ./bench/cpu -python PYTHON [-out DIR] [-only TEXT]
//
// PYTHON has PyTorch. Both have as many threads as there are cores. Errors are relative L2 against float64, over the whole result.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/attnb/attnb/cudaops/host"
)

// report is the JSON file.
type report struct {
	Processor string `json:"processor"`
	Cores     int    `json:"cores"`
	Load      string `json:"load"` // of the machine, before, in /proc/loadavg
	Go        string `json:"go"`
	Torch     string `json:"torch"`
	Vectors   string `json:"torch_vectors"`
	Commit    string `json:"commit"`
	Date      string `json:"date"`
	Rows      []row  `json:"rows"`
}

func main() {
	python := flag.String("python", "python3", "a Python that has PyTorch")
	out := flag.String("out", "", "folder for the JSON file; empty: none is written")
	only := flag.String("only", "", "measure cases alone whose name contains this")
	flag.Parse()
	pass, err := bench(*python, *out, *only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/cpu:", err)
		os.Exit(2)
	}
	if !pass {
		fmt.Fprintln(os.Stderr, "bench/cpu: a row falls short")
		os.Exit(1)
	}
}

func bench(python, out, only string) (pass bool, err error) {
	cores := runtime.GOMAXPROCS(0)
	p, err := startPeer(python, cores)
	if err != nil {
		return false, fmt.Errorf("%s: %w", python, err)
	}
	defer func() { _ = p.close() }()
	load, _ := os.ReadFile("/proc/loadavg")
	commit, _ := exec.Command("git", "rev-parse", "--short", "HEAD").Output()
	now := time.Now().UTC()
	r := report{
		Processor: host.New(host.Options{}).Info().Device, Cores: cores, Load: strings.TrimSpace(string(load)), Go: runtime.Version(),
		Torch: p.facts.Torch, Vectors: p.facts.Vectors, Commit: strings.TrimSpace(string(commit)), Date: now.Format(time.RFC3339),
	}
	fmt.Printf("%s; PyTorch %s, %s; %d cores\n", r.Processor, r.Torch, r.Vectors, r.Cores)
	pass = true
	for _, c := range cases() {
		if !strings.Contains(c.name, only) {
			continue
		}
		kernels := host.AllKernels()
		if !c.all {
			kernels = kernels[len(kernels)-1:]
		}
		fmt.Fprintln(os.Stderr, c.name) // there is nothing else to see for minutes
		rows, err := measure(&c, p, kernels)
		if err != nil {
			return false, fmt.Errorf("%s: %w", c.name, err)
		}
		for _, row := range rows {
			pass = pass && row.Pass
		}
		r.Rows = append(r.Rows, rows...)
	}
	table(r.Rows)
	if out == "" {
		return pass, nil
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return false, err
	}
	return pass, os.WriteFile(filepath.Join(out, "cpu-"+now.Format("20060102T150405Z")+".json"), append(text, '\n'), 0o644)
}

// table prints the rows. Each way of PyTorch has its time, the ratio, what that must be, and its error.
func table(rows []row) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "op\tkernels\tours\t\terror\tPyTorch: time, ours is that many times as fast (must be), error\t")
	for _, r := range rows {
		rate := ""
		if r.GFLOPs > 0 {
			rate = fmt.Sprintf("%.0f GFLOP/s", r.GFLOPs)
		} else if r.GBs > 0 {
			rate = fmt.Sprintf("%.1f GB/s", r.GBs)
		}
		short := ""
		if !r.Pass {
			short = "  FALLS SHORT"
		}
		var peers []string
		for _, p := range r.Peers {
			need := ""
			if p.Need > 0 {
				need = fmt.Sprintf(" (%.1f)", p.Need)
			}
			peers = append(peers, fmt.Sprintf("%s %.2f ms, %.2f%s, %.1e", p.Name, p.MS.Quickest, p.Ratio, need, p.RelL2))
		}
		fmt.Fprintf(w, "%s\t%s\t%.3f ms\t%s\t%.1e\t%s%s\t\n", r.Name, r.Kernels, r.MS.Quickest, rate, r.RelL2, strings.Join(peers, "; "), short)
	}
	_ = w.Flush()
}

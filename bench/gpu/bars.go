//go:build cuda

package main

import (
	"fmt"
	"math"
)

// A bar is what a row must reach, and what it is hoped to reach. What is 0 is not asked.
type bar struct {
	label  string
	ratio  [2]float64 // times as quick as PyTorch
	tbs    [2]float64
	micros [2]float64 // microseconds, at most
	error  float64    // relative L2 that is fine whatever PyTorch's; else it is 1.2 times PyTorch's
}

var bars = []bar{
	{label: "prefill H 32 KV 32 d 128 S 16384 T 16384 causal", ratio: [2]float64{2.5, 3.5}},
	{label: "prefill H 32 KV 32 d 128 S 4096 T 4096 causal", ratio: [2]float64{2.5, 3.5}},
	{label: "prefill H 32 KV 32 d 128 S 1024 T 1024 causal", ratio: [2]float64{2, 2.5}},
	{label: "prefill H 32 KV 32 d 128 S 512 T 512 causal", ratio: [2]float64{1.5, 2.5}},
	{label: "prefill H 32 KV 32 d 128 S 128 T 128 causal", ratio: [2]float64{1.2, 1.8}},
	{label: "prefill H 16 KV 16 d 64 S 4096 T 4096 causal", ratio: [2]float64{2.5, 3.5}},
	{label: "prefill H 16 KV 16 d 64 S 16384 T 16384 causal", ratio: [2]float64{2.5, 3.5}},
	{label: "prefill H 2 KV 2 d 128 S 4096 T 4096 causal amp4"},
	{label: "prefill H 2 KV 2 d 64 S 65536 T 65536 causal"},
	{label: "prefill H 2 KV 2 d 64 S 16384 T 16384 causal positive"},
	{label: "prefill H 8 KV 8 d 128 S 4096 T 4096 causal denormal"},
	{label: "prefill H 8 KV 8 d 128 S 4096 T 4096 causal spread"},
	{label: "decode H 32 KV 32 d 128 T 65536", tbs: [2]float64{3.7, 4}},
	{label: "decode H 32 KV 32 d 128 T 8192", tbs: [2]float64{3.2, 3.6}},
	{label: "decode H 32 KV 32 d 128 T 1024", micros: [2]float64{12, 8}},
	{label: "decode H 32 KV 32 d 128 T 128", micros: [2]float64{9, 6}},
	{label: "decode H 32 KV 8 d 128 T 65536", tbs: [2]float64{3.5, 3.9}},
	{label: "decode H 8 KV 8 d 128 T 8192 amp4"},
	{label: "decode H 8 KV 8 d 128 T 8192 positive"},
	{label: "decode H 8 KV 8 d 128 T 8192 denormal"},
	{label: "decode H 8 KV 8 d 128 T 8192 spread"},
	{label: "rope H 32 d 128 S 16384", tbs: [2]float64{3.9, 4.1}, error: 1e-7},
	{label: "rope H 32 d 128 S 16384 offset 1000000", tbs: [2]float64{3.9, 4.1}, error: 1e-7},
	{label: "rope H 32 d 128 S 16384 offset 1032192", tbs: [2]float64{3.9, 4.1}, error: 1e-7},
	{label: "gather H 32 d 128 S 16384", tbs: [2]float64{3.9, 4.1}, error: 1e-30},
	{label: "softmax d 16384 S 16384", tbs: [2]float64{3.9, 4.1}},
	{label: "softmax d 16384 S 16384 causal", tbs: [2]float64{3.5, 4.5}},
	{label: "append H 32 d 128 T 65536", micros: [2]float64{8, 5}, error: 1e-30},
	{label: "linear d 4096 S 4096 T 12288", ratio: [2]float64{2.5, 3.5}, error: 1.2e-6},
	{label: "layer H 32 d 128 S 4096 T 4096", ratio: [2]float64{2, 3}},
	{label: "step H 32 d 128 S 1 T 8192", ratio: [2]float64{1.5, 2}},
	{label: "pooled H 1 KV 1 d 128 S 131072 T 131072 causal", ratio: [2]float64{4, 6}, error: 3e-7},
}

// judge says what a row falls short of, and which goals it misses.
func (b bar) judge(r row) (short, goals []string) {
	at := func(what string, must, goal float64, reached func(want float64) bool) {
		switch {
		case must == 0:
		case !reached(must):
			short = append(short, fmt.Sprintf("%s %.4g", what, must))
		case !reached(goal):
			goals = append(goals, fmt.Sprintf("%s %.4g", what, goal))
		}
	}
	if r.Peer != "" {
		at("ratio", b.ratio[0], b.ratio[1], func(want float64) bool { return r.Ratio >= want })
	}
	at("TB/s", b.tbs[0], b.tbs[1], func(want float64) bool { return r.TBs >= want })
	at("us", b.micros[0], b.micros[1], func(want float64) bool { return 1e3*r.MS <= want })
	if most := math.Max(b.error, 1.2*r.PeerRelL2); most > 0 {
		at("error", most, most, func(want float64) bool { return r.RelL2 <= want })
	}
	return short, goals
}

// judged prints every row that has a bar, and returns how many fall short.
func judged(rows []row) (fell int) {
	for _, r := range rows {
		for _, b := range bars {
			if b.label != r.label() {
				continue
			}
			short, goals := b.judge(r)
			verdict := "met"
			if len(short) > 0 {
				fell++
				verdict = fmt.Sprint("FALLS SHORT of ", short)
			} else if len(goals) > 0 {
				verdict = fmt.Sprint("met, not the goal of ", goals)
			}
			fmt.Printf("%-58s %10.1f us %6.2f TB/s %6.2f x  error %.1e (%.1e)  %s\n", r.label(), 1e3*r.MS, r.TBs, r.Ratio, r.RelL2, r.PeerRelL2, verdict)
		}
	}
	return fell
}

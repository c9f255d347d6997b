//go:build cuda

package main

import (
	"math"
	"testing"
)

func TestJudge(t *testing.T) {
	b := bar{ratio: [2]float64{2, 3}, micros: [2]float64{12, 8}, error: 1e-7}
	for _, c := range []struct {
		r            row
		short, goals int
	}{
		{row{Peer: "torch", Ratio: 3, MS: 0.008, RelL2: 1e-7}, 0, 0},
		{row{Peer: "torch", Ratio: 2, MS: 0.012, RelL2: 1e-7}, 0, 2},
		{row{Peer: "torch", Ratio: 1.9, MS: 0.013, RelL2: 2e-7}, 3, 0},
		{row{Peer: "torch", Ratio: 4, MS: 0.001, RelL2: 2e-7, PeerRelL2: 2e-7}, 0, 0},
		{row{Peer: "torch", Ratio: math.NaN(), MS: math.NaN(), RelL2: math.NaN()}, 3, 0},
	} {
		if short, goals := b.judge(c.r); len(short) != c.short || len(goals) != c.goals {
			t.Errorf("%+v falls short of %v, misses %v", c.r, short, goals)
		}
	}
}

// Every bar is for a row that is measured.
func TestBarsHaveRows(t *testing.T) {
	rows := map[string]bool{}
	for _, list := range cases() {
		for _, c := range list {
			rows[c.row.label()] = true
		}
	}
	for _, b := range bars {
		if !rows[b.label] {
			t.Errorf("no row %q", b.label)
		}
	}
}

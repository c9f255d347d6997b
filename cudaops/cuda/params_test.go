//go:build cuda

package cuda

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// field is a field of a struct as a C compiler lays it out.
type field struct {
	name         string
	offset, size uintptr
}

// layouts reads the structs of the kernels' sources and lays them out by C's rules: every type's alignment is its size,
// a struct's and an array's that of its largest element.
type layouts struct {
	fields  map[string][]field
	size    map[string]uintptr
	align   map[string]uintptr
	defines map[string]int
}

var (
	structs = regexp.MustCompile(`(?s)\nstruct (\w+) \{\n(.*?)\n\};`)
	members = regexp.MustCompile(`^(?:const )?(\w+) (.*)$`)
	define  = regexp.MustCompile(`(?m)^#define (\w+) (\d+)$`)
	comment = regexp.MustCompile(`//[^\n]*`)
	array   = regexp.MustCompile(`^(\w+)\[(\w+)\]$`)
)

func readLayouts(t *testing.T) *layouts {
	t.Helper()
	l := &layouts{
		fields:  map[string][]field{},
		size:    map[string]uintptr{"int": 4, "unsigned": 4, "float": 4, "double": 8, "i64": 8, "u64": 8},
		align:   map[string]uintptr{"int": 4, "unsigned": 4, "float": 4, "double": 8, "i64": 8, "u64": 8},
		defines: map[string]int{},
	}
	for _, name := range []string{"common.cuh", "cells.cuh", "lse.cu", "pool.cu", "gather.cu", "activation.cu", "add.cu", "embedding.cu", "norm.cu", "rope.cu", "softmax.cu", "gemm.cu", "context.cu", "prefill.cu", "halves.cu", "prefill_halves.cu", "halves_rows.cu", "gemm_warpgroup.cu", "cells_warpgroup.cu", "decode.cu", "variant.cu"} {
		text, err := os.ReadFile(filepath.Join("..", "kernels", name))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range define.FindAllStringSubmatch(string(text), -1) {
			l.defines[m[1]], _ = strconv.Atoi(m[2])
		}
		for _, m := range structs.FindAllStringSubmatch(string(text), -1) {
			if body := comment.ReplaceAllString(m[2], ""); !strings.Contains(body, "(") { // one with methods is no parameter
				l.add(t, m[1], body)
			}
		}
	}
	return l
}

func (l *layouts) add(t *testing.T, name, body string) {
	var at, align uintptr
	for _, line := range strings.Split(body, "\n") {
		line = strings.TrimSuffix(strings.TrimSpace(line), ";")
		if line == "" {
			continue
		}
		m := members.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("struct %s: %q", name, line)
		}
		for _, v := range strings.Split(m[2], ",") {
			v = strings.TrimSpace(v)
			size, a, count := l.size[m[1]], l.align[m[1]], 1
			if strings.HasPrefix(v, "*") {
				v, size, a = v[1:], 8, 8
			}
			if m := array.FindStringSubmatch(v); m != nil {
				v, count = m[1], l.defines[m[2]]
			}
			if size == 0 || count == 0 {
				t.Fatalf("struct %s: %q has an unknown type or length", name, line)
			}
			at = (at + a - 1) / a * a
			l.fields[name] = append(l.fields[name], field{v, at, size * uintptr(count)})
			at += size * uintptr(count)
			align = max(align, a)
		}
	}
	l.size[name], l.align[name] = (at+align-1)/align*align, align
}

// The Go structs have the fields of the C ones at the same places.
func TestParamsMatchKernels(t *testing.T) {
	l := readLayouts(t)
	for name, v := range map[string]any{
		"Progress": progressParams{}, "View": view{}, "Extent": extent{}, "Pair": pairParams{}, "Gather": gatherParams{}, "Add": addParams{},
		"Activate": activateParams{}, "Multiply": multiplyParams{}, "Embedding": embeddingParams{}, "Norm": normParams{},
		"Rope": ropeParams{}, "Softmax": softmaxParams{}, "Gemm": gemmParams{}, "Context": contextParams{}, "Prefill": prefillParams{}, "Decode": decodeParams{}, "Halves": halvesParams{}, "PrefillHalves": prefillHalvesParams{}, "HalvesRows": halvesRowsParams{}, "GemmHalves": gemmHalvesParams{},
		"Cells": cellsParams{}, "CellsHalves": cellsHalvesParams{}, "LseJoin": lseJoinParams{}, "PoolJoin": poolJoinParams{}, "Changed": changedParams{},
	} {
		typ := reflect.TypeOf(v)
		var got []field
		for i := range typ.NumField() {
			f := typ.Field(i)
			switch {
			case f.Name == "_":
				f.Name = "reserved"
			case f.Anonymous:
				f.Name = strings.TrimSuffix(f.Name, "Params")
			}
			got = append(got, field{f.Name, f.Offset, f.Type.Size()})
		}
		if !reflect.DeepEqual(got, l.fields[name]) || typ.Size() != l.size[name] {
			t.Errorf("%s: Go has %v, %d bytes; C has %v, %d bytes", name, got, typ.Size(), l.fields[name], l.size[name])
		}
		if typ.Size() > 4096 {
			t.Errorf("%s: %d bytes, a kernel takes 4096 at most", name, typ.Size())
		}
	}
	for name, want := range map[string]int{
		"PAIRS": gatherPairs, "FREQUENCIES": ropeFrequencies, "TABLE": ropeTable, "BLOCK": blockThreads, "UNROLL": unroll,
	} {
		if l.defines[name] != want {
			t.Errorf("%s is %d in C, %d in Go", name, l.defines[name], want)
		}
	}
}

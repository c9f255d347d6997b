package host

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// eachKernels runs a test on all kernels that the processor has.
func eachKernels(t *testing.T, test func(t *testing.T, k *kernels)) {
	for _, k := range available {
		t.Run(k.name, func(t *testing.T) { test(t, k) })
	}
}

// eachStripKernels runs a test on the kernels of strips, too.
func eachStripKernels(t *testing.T, test func(t *testing.T, k *stripKernels)) {
	eachKernels(t, func(t *testing.T, k *kernels) {
		t.Run("strip", func(t *testing.T) { test(t, &k.strip) })
		t.Run("wide", func(t *testing.T) { test(t, &k.wide) })
	})
}

// sizes are around the widths of vectors and the groups that kernels compute at once.
var sizes = []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 16, 17, 23, 31, 32, 33, 63, 64, 65, 71, 72, 73, 128}

// guarded is n normal values between others, by which a test sees a kernel that writes outside; odd says that no vector is aligned.
func guarded(r *rand.Rand, n int, odd bool) (x []float32, intact func() bool) {
	const guard = 64
	from := guard
	if odd {
		from++
	}
	all := aligned(n + 2*guard + 1)
	for i := range all {
		all[i] = float32(r.NormFloat64())
	}
	before := slices.Clone(all)
	return all[from : from+n : from+n], func() bool {
		same := func(a, b []float32) bool {
			return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
		}
		return same(all[:from], before[:from]) && same(all[from+n:], before[from+n:])
	}
}

// near says whether got is want, of n terms that come to size together without their signs, up to what rounding allows.
func near(got float32, want, size float64, n int) bool {
	return math.Abs(float64(got)-want) <= float64(n+4)*size*0x1p-24
}

func TestProducts(t *testing.T) {
	eachStripKernels(t, func(t *testing.T, k *stripKernels) {
		r := rand.New(rand.NewPCG(1, 1))
		for _, n := range sizes {
			if n > tileKeys {
				continue
			}
			for _, dim := range sizes {
				stride := dim + n%3
				q, qIntact := guarded(r, dim*tileRows, false)
				keys, keysIntact := guarded(r, (n-1)*stride+dim, n%2 == 1)
				out, outIntact := guarded(r, n*tileRows, false)
				before := slices.Clone(out)
				k.products(out, q, keys, stride, n, dim, 0.3)
				for j := range n {
					for l := range tileRows {
						got := out[j*tileRows+l]
						if l >= k.lanes {
							if got != before[j*tileRows+l] {
								t.Fatalf("n %d, dim %d: key %d, lane %d is not its own and changed", n, dim, j, l)
							}
							continue
						}
						want, size := 0.0, 0.0
						for i := range dim {
							p := 0.3 * float64(q[i*tileRows+l]) * float64(keys[j*stride+i])
							want, size = want+p, size+math.Abs(p)
						}
						if !near(got, want, size, dim) {
							t.Fatalf("n %d, dim %d: key %d, lane %d is %v, want %v", n, dim, j, l, got, want)
						}
					}
				}
				if !qIntact() || !keysIntact() || !outIntact() {
					t.Fatalf("n %d, dim %d: wrote outside", n, dim)
				}
			}
		}
	})
}

func TestWeighted(t *testing.T) {
	eachStripKernels(t, func(t *testing.T, k *stripKernels) {
		r := rand.New(rand.NewPCG(2, 1))
		for _, n := range sizes {
			if n > tileKeys {
				continue
			}
			for _, dim := range sizes {
				stride := dim + n%3
				weights, _ := guarded(r, n*tileRows, false)
				factor, _ := guarded(r, tileRows, false)
				values, _ := guarded(r, (n-1)*stride+dim, n%2 == 1)
				acc, intact := guarded(r, dim*tileRows, false)
				before := slices.Clone(acc)
				k.weighted(acc, factor, weights, values, stride, n, dim)
				for i := range dim {
					for l := range tileRows {
						at := i*tileRows + l
						if l >= k.lanes {
							if acc[at] != before[at] {
								t.Fatalf("n %d, dim %d: dim %d, lane %d is not its own and changed", n, dim, i, l)
							}
							continue
						}
						want := float64(factor[l]) * float64(before[at])
						size := math.Abs(want)
						for j := range n {
							p := float64(weights[j*tileRows+l]) * float64(values[j*stride+i])
							want, size = want+p, size+math.Abs(p)
						}
						if !near(acc[at], want, size, n) {
							t.Fatalf("n %d, dim %d: dim %d, lane %d is %v, want %v", n, dim, i, l, acc[at], want)
						}
					}
				}
				if !intact() {
					t.Fatalf("n %d, dim %d: wrote outside", n, dim)
				}
			}
		}
	})
}

// A row alone must give the bits of a lane.
func TestRowsAreLanes(t *testing.T) {
	eachKernels(t, func(t *testing.T, k *kernels) {
		r := rand.New(rand.NewPCG(3, 1))
		for _, n := range sizes {
			if n > tileKeys {
				continue
			}
			for _, dim := range sizes {
				stride := dim + n%3
				q, _ := guarded(r, dim*tileRows, false)
				keys, _ := guarded(r, (n-1)*stride+dim, n%2 == 1)
				scores, _ := guarded(r, n*tileRows, false)
				k.strip.products(scores, q, keys, stride, n, dim, 0.3)
				const lane = 5
				x := make([]float32, dim)
				for i := range x {
					x[i] = q[i*tileRows+lane]
				}
				row, intact := guarded(r, n, n%2 == 1)
				k.dots(row, x, keys, stride, 0.3)
				column := func(of []float32, n int) []float32 {
					c := make([]float32, n)
					for j := range c {
						c[j] = of[j*tileRows+lane]
					}
					return c
				}
				same(t, fmt.Sprintf("products, n %d, dim %d", n, dim), row, column(scores, n))

				m, _ := guarded(r, tileRows, false)
				sum := make([]float32, tileRows)
				k.strip.exponentials(sum, scores, m, n)
				got := k.exponentialsRow(row, row, m[lane])
				same(t, fmt.Sprintf("exponentials, n %d", n), row, column(scores, n))
				same(t, fmt.Sprintf("sum, n %d", n), []float32{got}, sum[lane:lane+1])

				acc, _ := guarded(r, dim*tileRows, false)
				one, accIntact := guarded(r, dim, dim%2 == 1)
				copy(one, column(acc, dim))
				k.strip.weighted(acc, m, scores, keys, stride, n, dim)
				part := make([]float32, dim)
				k.addWeighted(part, row, keys, stride)
				k.fold(one, part, m[lane])
				same(t, fmt.Sprintf("weighted, n %d, dim %d", n, dim), one, column(acc, dim))
				if !intact() || !accIntact() {
					t.Fatalf("n %d, dim %d: wrote outside", n, dim)
				}
			}
		}
	})
}

func same(t *testing.T, what string, got, want []float32) {
	t.Helper()
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Fatalf("%s: element %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

// A maximum passes over NaN wherever it stands.
func TestMaximum(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	eachKernels(t, func(t *testing.T, k *kernels) {
		r := rand.New(rand.NewPCG(4, 1))
		for _, n := range sizes {
			for at := range n {
				for _, x := range []float32{nan, inf, -inf, 9} {
					row, _ := guarded(r, n, n%2 == 1)
					row[at] = x
					want := plainMaximumRow(row, -0.5)
					if got := k.maximumRow(row, -0.5); got != want {
						t.Fatalf("%d elements, %v at %d: %v, want %v", n, x, at, got, want)
					}
					if n > tileKeys {
						continue
					}
					for _, s := range []*stripKernels{&k.strip, &k.wide} {
						lanes := make([]float32, n*tileRows)
						m := make([]float32, tileRows)
						for l := range m {
							m[l] = -0.5
							for j := range row {
								lanes[j*tileRows+l] = row[(j+l)%n]
							}
						}
						s.maximum(m, lanes, n)
						for l := range s.lanes {
							if m[l] != want {
								t.Fatalf("%d elements, %v, lane %d: %v, want %v", n, x, l, m[l], want)
							}
						}
					}
				}
			}
		}
	})
}

func TestRowsOfAnyLength(t *testing.T) {
	eachKernels(t, func(t *testing.T, k *kernels) {
		r := rand.New(rand.NewPCG(5, 1))
		for _, n := range append([]int{0}, sizes...) {
			for _, odd := range []bool{false, true} {
				x, _ := guarded(r, n, odd)
				y, intact := guarded(r, n, !odd)
				before := slices.Clone(y)
				k.fold(y, x, 0.7)
				for i := range y {
					if want := float64(before[i])*float64(float32(0.7)) + float64(x[i]); !near(y[i], want, math.Abs(want)+math.Abs(float64(x[i])), 1) {
						t.Fatalf("fold of %d: element %d is %v, want %v", n, i, y[i], want)
					}
				}
				k.scaleRow(y, x, 0.7)
				for i := range y {
					if want := 0.7 * x[i]; y[i] != want {
						t.Fatalf("scaleRow of %d: element %d is %v, want %v", n, i, y[i], want)
					}
				}
				k.scaleRow(y, x, 0)
				for i := range y {
					if math.Float32bits(y[i]) != 0 {
						t.Fatalf("scaleRow by 0: %v", y[i])
					}
				}
				if !intact() {
					t.Fatalf("%d elements: wrote outside", n)
				}
			}
		}
	})
}

func TestFinite(t *testing.T) {
	eachKernels(t, func(t *testing.T, k *kernels) {
		for _, dim := range sizes {
			const n = 3
			stride := dim + 2
			x := make([]float32, n*stride)
			for i := range x {
				x[i] = math.MaxFloat32
				if i%stride >= dim {
					x[i] = float32(math.NaN()) // between the rows
				}
			}
			if !k.finite(x, stride, n, dim) || !k.finite(x, stride, 0, dim) {
				t.Fatalf("dim %d: finite values are said not to be", dim)
			}
			for r := range n {
				for i := range dim {
					for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
						x[r*stride+i] = float32(bad)
						if k.finite(x, stride, n, dim) {
							t.Fatalf("dim %d: %v at row %d, element %d is said to be finite", dim, bad, r, i)
						}
						x[r*stride+i] = 1
					}
				}
			}
		}
	})
}

func TestTurn(t *testing.T) {
	eachKernels(t, func(t *testing.T, k *kernels) {
		r := rand.New(rand.NewPCG(6, 1))
		for _, rows := range sizes {
			for _, columns := range sizes {
				src, _ := guarded(r, (rows-1)*(columns+3)+columns, rows%2 == 1)
				dst, intact := guarded(r, (columns-1)*(rows+1)+rows, columns%2 == 1)
				before := slices.Clone(dst)
				k.turn(dst, rows+1, src, columns+3, rows, columns)
				for i, got := range dst {
					want := before[i]
					if c, r := i/(rows+1), i%(rows+1); r < rows {
						want = src[r*(columns+3)+c]
					}
					if got != want {
						t.Fatalf("%d x %d: element %d is %v, want %v", rows, columns, i, got, want)
					}
				}
				if !intact() {
					t.Fatalf("%d x %d: wrote outside", rows, columns)
				}
			}
		}
	})
}

func TestParseKernels(t *testing.T) {
	best := available[len(available)-1].name
	for _, name := range []string{"", "auto", best} {
		if k, err := ParseKernels(name); err != nil || k.String() != best {
			t.Errorf("%q: %v, %v", name, k, err)
		}
	}
	if k, err := ParseKernels("plain"); err != nil || k.String() != "plain" {
		t.Errorf("plain: %v, %v", k, err)
	}
	if _, err := ParseKernels("sse9"); err == nil || !strings.Contains(err.Error(), `kernels "sse9": this processor has auto, plain`) {
		t.Errorf("unknown: %v", err)
	}
}

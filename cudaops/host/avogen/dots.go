package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// load8 loads 4 elements of each of 8 rows from p on, row r and row r+4 in the halves of one vector. mask, if not nil, says which of the 4.
func load8(p, far reg.GPVirtual, step, three reg.GPVirtual, disp int, mask reg.Register) []reg.VecVirtual {
	rows := make([]reg.VecVirtual, 4)
	place := func(base reg.GPVirtual, r int) Mem {
		switch r {
		case 1:
			return Mem{Base: base, Index: step, Scale: 1, Disp: disp}
		case 2:
			return Mem{Base: base, Index: step, Scale: 2, Disp: disp}
		case 3:
			return Mem{Base: base, Index: three, Scale: 1, Disp: disp}
		}
		return Mem{Base: base, Disp: disp}
	}
	for r := range rows {
		rows[r] = YMM()
		if mask == nil {
			VBROADCASTF128(place(p, r), rows[r])
			VINSERTF128(Imm(1), place(far, r), rows[r], rows[r])
			continue
		}
		VXORPS(rows[r], rows[r], rows[r])
		for half, base := range []reg.GPVirtual{p, far} {
			x := XMM()
			VMASKMOVPS(place(base, r), mask, x)
			VINSERTF128(number(half), x, rows[r], rows[r])
		}
	}
	return rows
}

// columns turns 4 columns of 8 rows, as load8 gives them, into 4 vectors, a column each.
func columns(rows []reg.VecVirtual) []reg.VecVirtual {
	out := make([]reg.VecVirtual, 4)
	for i := range out {
		out[i] = YMM()
	}
	a, b, c, d := YMM(), YMM(), YMM(), YMM()
	VUNPCKLPS(rows[1], rows[0], a) // 00 10 01 11
	VUNPCKHPS(rows[1], rows[0], b) // 02 12 03 13
	VUNPCKLPS(rows[3], rows[2], c)
	VUNPCKHPS(rows[3], rows[2], d)
	VSHUFPS(Imm(0x44), c, a, out[0])
	VSHUFPS(Imm(0xee), c, a, out[1])
	VSHUFPS(Imm(0x44), d, b, out[2])
	VSHUFPS(Imm(0xee), d, b, out[3])
	return out
}

// dots adds up each product in the order of products16, so that a row alone gives the bits that it gives in a tile: 8 keys are turned into
// columns, 4 dims at a time. 16 keys go together where there are so many: a product waits for the one before it in its sum.
func dots() {
	function("dots", "func(out, q, keys *float32, stride, n, dim int, scale float32)",
		"dots writes scale * keys[j] . q for n keys, of dim elements and stride apart.")
	out, q, keys := pointer("out"), pointer("q"), pointer("keys")
	step, n := stride("stride"), pointer("n")
	scale := YMM()
	VBROADCASTSS(Load(Param("scale"), XMM()), scale)
	three := GP64()
	LEAQ(Mem{Base: step, Index: step, Scale: 2}, three)
	for _, eights := range []int{2, 1} {
		dotsOf(eights, out, q, keys, step, three, n, scale)
	}
	Label("one")
	TESTQ(n, n)
	JZ(LabelRef("done"))
	key, at, dim, sum := copied(keys), copied(q), pointer("dim"), XMM()
	VXORPS(sum, sum, sum)
	Label("dim")
	x := XMM()
	VMOVSS(Mem{Base: at}, x)
	VFMADD231SS(Mem{Base: key}, x, sum)
	ADDQ(Imm(4), key)
	ADDQ(Imm(4), at)
	DECQ(dim)
	JNZ(LabelRef("dim"))
	VMULSS(scale.AsX(), sum, sum)
	VMOVSS(sum, Mem{Base: out})
	ADDQ(Imm(4), out)
	ADDQ(step, keys)
	DECQ(n)
	JMP(LabelRef("one"))
	Label("done")
	end()
}

// dotsOf emits the code for 8 or 16 keys, as long as n has as many left.
func dotsOf(eights int, out, q, keys, step, three, n reg.GPVirtual, scale reg.VecVirtual) {
	label := fmt.Sprintf("eights%d", eights)
	Label(label)
	CMPQ(n, number(8*eights))
	JL(LabelRef("past_" + label))
	at, dim := copied(q), pointer("dim")
	near := []reg.GPVirtual{keys} // each serves the 4 keys from it on
	sums := make([]reg.VecVirtual, eights)
	for i := range 2*eights - 1 {
		next := GP64()
		LEAQ(Mem{Base: near[i], Index: step, Scale: 4}, next)
		near = append(near, next)
	}
	for i := range sums {
		sums[i] = YMM()
		VXORPS(sums[i], sums[i], sums[i])
	}
	x := func(i int) reg.VecVirtual {
		v := YMM()
		VBROADCASTSS(Mem{Base: at, Disp: 4 * i}, v)
		return v
	}
	Label(label + "_dims")
	CMPQ(dim, Imm(4))
	JL(LabelRef(label + "_rest"))
	for e, sum := range sums {
		for i, c := range columns(load8(near[2*e], near[2*e+1], step, three, 0, nil)) {
			VFMADD231PS(c, x(i), sum)
		}
	}
	for _, p := range append([]reg.GPVirtual{at}, near...) {
		ADDQ(Imm(16), p)
	}
	SUBQ(Imm(4), dim)
	JMP(LabelRef(label + "_dims"))
	Label(label + "_rest")
	TESTQ(dim, dim)
	JZ(LabelRef(label + "_store"))
	mask := tail(dim)
	for e, sum := range sums {
		rest := columns(load8(near[2*e], near[2*e+1], step, three, 0, mask.AsX()))
		for i := range 3 {
			VFMADD231PS(rest[i], x(i), sum)
			if i < 2 {
				CMPQ(dim, number(i+1))
				JE(LabelRef(fmt.Sprintf("%s_rest%d", label, e)))
			}
		}
		Label(fmt.Sprintf("%s_rest%d", label, e))
	}
	Label(label + "_store")
	for e, sum := range sums {
		VMULPS(scale, sum, sum)
		VMOVUPS(sum, Mem{Base: out, Disp: 32 * e})
	}
	ADDQ(number(32*eights), out)
	moved := pointer("dim")
	ANDQ(I8(-4), moved)
	SHLQ(Imm(2), moved)
	SUBQ(moved, keys)
	for range eights {
		LEAQ(Mem{Base: keys, Index: step, Scale: 8}, keys)
	}
	SUBQ(number(8*eights), n)
	JMP(LabelRef(label))
	Label("past_" + label)
}

func addWeighted() {
	function("addWeighted", "func(acc, weights, values *float32, stride, n, dim int)",
		"addWeighted adds weight * value to acc for each of n values, of dim elements and stride apart.")
	acc, weights, values := pointer("acc"), pointer("weights"), pointer("values")
	step, n, dim := stride("stride"), pointer("n"), pointer("dim")
	for _, size := range []struct {
		elements, vectors int
		vector            func() reg.VecVirtual
	}{{64, 8, YMM}, {8, 1, YMM}, {1, 1, XMM}} {
		label := fmt.Sprintf("dims%d", size.elements)
		Label(label)
		CMPQ(dim, number(size.elements))
		JL(LabelRef("past_" + label))
		sums := make([]reg.VecVirtual, size.vectors)
		for i := range sums {
			sums[i] = size.vector()
			load(Mem{Base: acc, Disp: 32 * i}, sums[i])
		}
		weight, value, left := copied(weights), copied(values), copied(n)
		Label(label + "_key")
		w := size.vector()
		if size.elements == 1 {
			VMOVSS(Mem{Base: weight}, w)
		} else {
			VBROADCASTSS(Mem{Base: weight}, w)
		}
		for i, sum := range sums {
			fma(Mem{Base: value, Disp: 32 * i}, w, sum)
		}
		ADDQ(Imm(4), weight)
		ADDQ(step, value)
		DECQ(left)
		JNZ(LabelRef(label + "_key"))
		for i, sum := range sums {
			store(sum, Mem{Base: acc, Disp: 32 * i})
		}
		bytes := number(4 * size.elements)
		ADDQ(bytes, acc)
		ADDQ(bytes, values)
		SUBQ(number(size.elements), dim)
		JMP(LabelRef(label))
		Label("past_" + label)
	}
	end()
}

// transpose copies 8 rows by 4 columns at a time.
func transpose() {
	function("transpose", "func(dst *float32, dstStride int, src *float32, srcStride, rows, columns int)",
		"transpose copies element (r, c) of src to (c, r) of dst. rows and columns are multiples of 8 and of 4.")
	dst, dstStep, src, step, rows := pointer("dst"), stride("dstStride"), pointer("src"), stride("srcStride"), pointer("rows")
	three, dstThree := GP64(), GP64()
	LEAQ(Mem{Base: step, Index: step, Scale: 2}, three)
	LEAQ(Mem{Base: dstStep, Index: dstStep, Scale: 2}, dstThree)
	Label("rows")
	near, far, to, left := copied(src), GP64(), copied(dst), pointer("columns")
	LEAQ(Mem{Base: src, Index: step, Scale: 4}, far)
	Label("columns")
	out := columns(load8(near, far, step, three, 0, nil))
	VMOVUPS(out[0], Mem{Base: to})
	VMOVUPS(out[1], Mem{Base: to, Index: dstStep, Scale: 1})
	VMOVUPS(out[2], Mem{Base: to, Index: dstStep, Scale: 2})
	VMOVUPS(out[3], Mem{Base: to, Index: dstThree, Scale: 1})
	LEAQ(Mem{Base: to, Index: dstStep, Scale: 4}, to)
	ADDQ(Imm(16), near)
	ADDQ(Imm(16), far)
	SUBQ(Imm(4), left)
	JNZ(LabelRef("columns"))
	ADDQ(Imm(32), dst)
	LEAQ(Mem{Base: src, Index: step, Scale: 8}, src)
	SUBQ(Imm(8), rows)
	JNZ(LabelRef("rows"))
	end()
}

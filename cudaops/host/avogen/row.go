package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// tail is the mask of the first n lanes of 8: 32 bytes at tail - 4n.
func tail(n reg.GPVirtual) reg.VecVirtual {
	m := tailMasks()
	at := GP64()
	LEAQ(m.Offset(32), at)
	back := copied(n)
	SHLQ(Imm(2), back)
	SUBQ(back, at)
	v := YMM()
	VMOVUPS(Mem{Base: at}, v)
	return v
}

var masks *Mem

func tailMasks() Mem {
	if masks == nil {
		m := GLOBL("tailMasks", RODATA|NOPTR)
		for i := range 16 {
			DATA(4*i, U32(uint32(math.MaxUint32*(1-i/8))))
		}
		masks = &m
	}
	return *masks
}

// eachElement emits code for vectors of 32, 8 and single elements, as long as n has so many left. emit gets how many vectors.
func eachElement(n reg.GPVirtual, emit func(vectors int, vector func() reg.VecVirtual, label string), advance ...reg.GPVirtual) {
	for _, size := range []struct {
		label    string
		elements int
		vectors  int
		vector   func() reg.VecVirtual
	}{{"block", 32, 4, YMM}, {"vector", 8, 1, YMM}, {"single", 1, 1, XMM}} {
		Label(size.label)
		CMPQ(n, number(size.elements))
		JL(LabelRef("past_" + size.label))
		emit(size.vectors, size.vector, size.label)
		for _, p := range advance {
			ADDQ(number(4*size.elements), p)
		}
		SUBQ(number(size.elements), n)
		JMP(LabelRef(size.label))
		Label("past_" + size.label)
	}
}

func load(m Mem, v reg.VecVirtual) {
	if v.Size() == 16 {
		VMOVSS(m, v)
	} else {
		VMOVUPS(m, v)
	}
}

func store(v reg.VecVirtual, m Mem) {
	if v.Size() == 16 {
		VMOVSS(v, m)
	} else {
		VMOVUPS(v, m)
	}
}

// fma emits sum += a * b.
func fma(a Op, b, sum reg.VecVirtual) {
	if sum.Size() == 16 {
		VFMADD231SS(a, b, sum)
	} else {
		VFMADD231PS(a, b, sum)
	}
}

func fold() {
	function("fold", "func(acc, x *float32, n int, factor float32)", "fold writes acc * factor + x for n elements.")
	acc, x, n := pointer("acc"), pointer("x"), pointer("n")
	f := YMM()
	VBROADCASTSS(Load(Param("factor"), XMM()), f)
	eachElement(n, func(vectors int, vector func() reg.VecVirtual, _ string) {
		for i := range vectors {
			v := vector()
			load(Mem{Base: x, Disp: 32 * i}, v)
			g := reg.VecVirtual(f)
			if v.Size() == 16 {
				g = f.AsX().(reg.VecVirtual)
			}
			fma(Mem{Base: acc, Disp: 32 * i}, g, v)
			store(v, Mem{Base: acc, Disp: 32 * i})
		}
	}, acc, x)
	end()
}

// scaleRow adds 0 so that no -0 tells in which order zeros were added up.
func scaleRow() {
	function("scaleRow", "func(dst, src *float32, n int, factor float32)", "scaleRow writes src * factor + 0 for n elements.")
	dst, src, n := pointer("dst"), pointer("src"), pointer("n")
	f := YMM()
	VBROADCASTSS(Load(Param("factor"), XMM()), f)
	eachElement(n, func(vectors int, vector func() reg.VecVirtual, _ string) {
		for i := range vectors {
			v := vector()
			VXORPS(v, v, v)
			g := reg.VecVirtual(f)
			if v.Size() == 16 {
				g = f.AsX().(reg.VecVirtual)
			}
			fma(Mem{Base: src, Disp: 32 * i}, g, v)
			store(v, Mem{Base: dst, Disp: 32 * i})
		}
	}, dst, src)
	end()
}

func maximumRow() {
	function("maximumRow", "func(x *float32, n int, m float32) float32", "maximumRow is the largest of m and n elements. A NaN is passed over.")
	x, n := pointer("x"), pointer("n")
	most := make([]reg.VecVirtual, 4)
	m := Load(Param("m"), XMM())
	for i := range most {
		most[i] = YMM()
		VBROADCASTSS(m, most[i])
	}
	single := XMM()
	VMOVAPS(m, single)
	eachElement(n, func(vectors int, vector func() reg.VecVirtual, _ string) {
		for i := range vectors {
			v := vector()
			load(Mem{Base: x, Disp: 32 * i}, v)
			if v.Size() == 16 {
				VMAXSS(single, v, single)
			} else {
				VMAXPS(most[i], v, most[i])
			}
		}
	}, x)
	VMAXPS(most[2], most[0], most[0])
	VMAXPS(most[3], most[1], most[1])
	VMAXPS(most[1], most[0], most[0])
	low, high := most[0].AsX(), XMM()
	VEXTRACTF128(Imm(1), most[0], high)
	VMAXPS(high, low, high)
	other := XMM()
	VMOVHLPS(high, high, other)
	VMAXPS(other, high, high)
	VMOVSHDUP(high, other)
	VMAXSS(other, high, high)
	VMAXSS(single, high, high)
	VZEROUPPER()
	Store(high, ReturnIndex(0))
	RET()
}

// exponentialsRow adds up element i in sum i%4, as exponentials16 does in each lane. Elements beyond the last are e^-Inf.
func exponentialsRow() {
	function("exponentialsRow", "func(dst, src *float32, n int, m float32) float32",
		"exponentialsRow writes e^(src-m) for n elements, and returns their sum.")
	dst, src, n := pointer("dst"), pointer("src"), pointer("n")
	e := newExp(strip16)
	base, sum := YMM(), XMM()
	VBROADCASTSS(Load(Param("m"), XMM()), base)
	VXORPS(sum, sum, sum)
	add := func(p reg.VecVirtual) {
		VADDPS(p.AsX(), sum, sum)
		high := XMM()
		VEXTRACTF128(Imm(1), p, high)
		VADDPS(high, sum, sum)
	}
	Label("vector")
	CMPQ(n, Imm(8))
	JL(LabelRef("rest"))
	x := YMM()
	VMOVUPS(Mem{Base: src}, x)
	VSUBPS(base, x, x)
	p := e.of(x)
	VMOVUPS(p, Mem{Base: dst})
	add(p)
	ADDQ(Imm(32), src)
	ADDQ(Imm(32), dst)
	SUBQ(Imm(8), n)
	JMP(LabelRef("vector"))
	Label("rest")
	TESTQ(n, n)
	JZ(LabelRef("done"))
	mask := tail(n)
	y, nothing := YMM(), YMM()
	VMASKMOVPS(Mem{Base: src}, mask, y)
	VSUBPS(base, y, y)
	VMOVUPS(constant("minusInf", math.Float32bits(float32(math.Inf(-1)))), nothing)
	VBLENDVPS(mask, y, nothing, y)
	p = e.of(y)
	VMASKMOVPS(p, mask, Mem{Base: dst})
	add(p)
	Label("done")
	other := XMM()
	VMOVHLPS(sum, sum, other)
	VADDPS(other, sum, sum)
	VMOVSHDUP(sum, other)
	VADDSS(other, sum, sum)
	VZEROUPPER()
	Store(sum, ReturnIndex(0))
	RET()
}

// finite multiplies by 0, which leaves NaN of what is not finite.
func finite() {
	function("finite", "func(x *float32, stride, n, dim int) float32",
		"finite is 0 if n rows of dim elements, stride apart, are all finite, else NaN.")
	x, step, n := pointer("x"), stride("stride"), pointer("n")
	sums, zero := make([]reg.VecVirtual, 4), YMM()
	for i := range sums {
		sums[i] = YMM()
		VXORPS(sums[i], sums[i], sums[i])
	}
	single := XMM()
	VXORPS(single, single, single)
	VXORPS(zero, zero, zero)
	Label("row")
	at, dim := copied(x), pointer("dim")
	eachElement(dim, func(vectors int, vector func() reg.VecVirtual, _ string) {
		for i := range vectors {
			m := Mem{Base: at, Disp: 32 * i}
			if vector().Size() == 16 {
				fma(m, zero.AsX().(reg.VecVirtual), single)
			} else {
				fma(m, zero, sums[i])
			}
		}
	}, at)
	ADDQ(step, x)
	DECQ(n)
	JNZ(LabelRef("row"))
	VADDPS(sums[2], sums[0], sums[0])
	VADDPS(sums[3], sums[1], sums[1])
	VADDPS(sums[1], sums[0], sums[0])
	high := XMM()
	VEXTRACTF128(Imm(1), sums[0], high)
	VADDPS(sums[0].AsX(), high, high)
	other := XMM()
	VMOVHLPS(high, high, other)
	VADDPS(other, high, high)
	VMOVSHDUP(high, other)
	VADDSS(other, high, high)
	VADDSS(single, high, high)
	VZEROUPPER()
	Store(high, ReturnIndex(0))
	RET()
}

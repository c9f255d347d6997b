package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// coefficients of e^r on |r| <= ln(2)/2, from r^6 down to r^2: the least largest relative error of a polynomial of degree 6 that begins
// 1 + r, 3.1e-9, or 3.7e-9 as rounded to f32. exp.go of package host has the same.
var coefficients = []float32{0.0013814541, 0.0083687454, 0.04166839, 0.16666521, 0.49999994, 1, 1}

// exp is the code for e^x: x = n ln 2 + r, and 2^n times the polynomial of r.
type exp struct {
	s                   strip
	lowest, highest     reg.VecVirtual
	log2e, ln2hi, ln2lo Mem
	polynomial          []Mem
	exponentOfOne       Mem
}

var constants = map[uint32]Mem{}

// constant is 64 bytes of the same float.
func constant(name string, bits uint32) Mem {
	if m, ok := constants[bits]; ok {
		return m
	}
	m := GLOBL(name, RODATA|NOPTR)
	for i := range 16 {
		DATA(4*i, U32(bits))
	}
	constants[bits] = m
	return m
}

// newExp loads what all exponentials of a kernel share. Between -104, whose e^x rounds to 0, and 89, whose e^x is beyond f32, nothing is cut.
func newExp(s strip) exp {
	f := func(name string, x float32) Mem { return constant(name, math.Float32bits(x)) }
	e := exp{s: s, lowest: s.vector(), highest: s.vector()}
	e.log2e = f("log2e", 1.442695)
	e.ln2hi = f("ln2hi", 0.693359375) // 9 bits, so that n times it is exact
	e.ln2lo = f("ln2lo", -2.12194440e-4)
	for _, c := range coefficients {
		e.polynomial = append(e.polynomial, f("exp"+string(rune('a'+len(e.polynomial))), c))
	}
	e.exponentOfOne = constant("exponentOfOne", 127)
	VMOVUPS(f("lowest", -104), e.lowest)
	VMOVUPS(f("highest", 89), e.highest)
	return e
}

// of emits e^x. NaN stays NaN: VMAXPS and VMINPS give their last operand then, which is x.
func (e exp) of(x reg.VecVirtual) reg.VecVirtual {
	s := e.s
	VMAXPS(x, e.lowest, x)
	VMINPS(x, e.highest, x)
	n := s.vector()
	VMULPS(e.log2e, x, n)
	if s.wide() {
		VRNDSCALEPS(Imm(8), n, n)
	} else {
		VROUNDPS(Imm(8), n, n)
	}
	VFNMADD231PS(e.ln2hi, n, x)
	VFNMADD231PS(e.ln2lo, n, x)
	p := s.vector()
	VMOVUPS(e.polynomial[0], p)
	for _, c := range e.polynomial[1:] {
		VFMADD213PS(c, x, p)
	}
	if s.wide() {
		VSCALEFPS(n, p, p)
		return p
	}
	// 2^n in two steps, of which the second alone may round: 2^-149 to 2^128 have no exponent of their own.
	half := s.vector()
	VCVTPS2DQ(n, n)
	VPSRAD(Imm(1), n, half)
	VPSUBD(half, n, n)
	for _, k := range []reg.VecVirtual{half, n} {
		VPADDD(e.exponentOfOne, k, k)
		VPSLLD(Imm(23), k, k)
		VMULPS(k, p, p)
	}
	return p
}

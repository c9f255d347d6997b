package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// rowBytes is what lies between a key, or a dim, of a tile and the next: 64 lanes.
const rowBytes = 64 * 4

// strip is how many lanes of a tile a kernel computes: vectors of a width.
type strip struct {
	suffix  string
	vectors int
	bytes   int // of a vector
}

// 16 lanes in the 16 registers of AVX2, and 64 in the 32 of AVX-512, leave room for the sums of six keys (or dims).
var (
	strip16 = strip{"16", 2, 32}
	strip64 = strip{"64", 4, 64}
)

func (s strip) wide() bool { return s.bytes == 64 }

func (s strip) vector() reg.VecVirtual {
	if s.wide() {
		return ZMM()
	}
	return YMM()
}

func (s strip) list() []reg.VecVirtual {
	v := make([]reg.VecVirtual, s.vectors)
	for i := range v {
		v[i] = s.vector()
	}
	return v
}

// zero loads where it cannot tell avo that v need not have been anything before: VXORPS of this width is no AVX512F.
func (s strip) zero(v reg.VecVirtual) {
	if s.wide() {
		VMOVUPS(constant("zero", 0), v)
	} else {
		VXORPS(v, v, v)
	}
}

// at is vector i of a row of a tile, r rows behind p.
func (s strip) at(p reg.Register, r, i int) Mem {
	return Mem{Base: p, Disp: r*rowBytes + i*s.bytes}
}

// function begins a kernel.
func function(name, signature, doc string) {
	TEXT(name, NOSPLIT, signature)
	Pragma("noescape")
	Doc(doc)
}

func pointer(name string) reg.GPVirtual {
	return Load(Param(name), GP64()).(reg.GPVirtual)
}

// stride loads a distance in floats as bytes.
func stride(name string) reg.GPVirtual {
	r := pointer(name)
	SHLQ(Imm(2), r)
	return r
}

func end() {
	VZEROUPPER()
	RET()
}

// copied is a register that begins as another.
func copied(r reg.Register) reg.GPVirtual {
	c := GP64()
	MOVQ(r, c)
	return c
}

// number is an operand of the size that the instructions here take: 8 bits, or 32.
func number(n int) Constant {
	if n < 128 {
		return U8(n)
	}
	return U32(n)
}

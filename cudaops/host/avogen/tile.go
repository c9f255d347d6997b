package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// groups are how many keys (or dims) are computed at once: as many as are left allow.
var groups = []int{6, 4, 1}

// eachGroup emits the code for a group, as long as n has as many left, for each of the groups.
func eachGroup(n reg.GPVirtual, emit func(g int, label string)) {
	for _, g := range groups {
		label := fmt.Sprintf("group%d", g)
		Label(label)
		CMPQ(n, number(g))
		JL(LabelRef("past_" + label))
		emit(g, label)
		SUBQ(number(g), n)
		JMP(LabelRef(label))
		Label("past_" + label)
	}
}

// products adds up d products for each key and lane, one by one from the first on, in one register.
func (s strip) products() {
	function("products"+s.suffix, "func(out, q, keys *float32, stride, n, dim int, scale float32)",
		fmt.Sprintf("products%s writes scale * keys[j] . q for n keys, of dim elements and stride apart, and %s lanes of a tile.", s.suffix, s.suffix))
	out, q, keys := pointer("out"), pointer("q"), pointer("keys")
	step, n, dim := stride("stride"), pointer("n"), pointer("dim")
	scale := Load(Param("scale"), XMM()).(reg.VecVirtual)
	three := GP64()
	LEAQ(Mem{Base: step, Index: step, Scale: 2}, three)
	eachGroup(n, func(g int, label string) {
		sums := make([][]reg.VecVirtual, g)
		for r := range sums {
			sums[r] = s.list()
			for _, v := range sums[r] {
				s.zero(v)
			}
		}
		rows := []reg.GPVirtual{copied(keys)} // each serves three keys
		if g > 3 {
			second := GP64()
			LEAQ(Mem{Base: keys, Index: three, Scale: 1}, second)
			rows = append(rows, second)
		}
		at, left := copied(q), copied(dim)
		Label(label + "_dim")
		x := s.list()
		for i, v := range x {
			VMOVUPS(s.at(at, 0, i), v)
		}
		for r := range g {
			m := Mem{Base: rows[r/3]}
			if r%3 > 0 {
				m.Index, m.Scale = step, uint8(r%3)
			}
			k := s.vector()
			VBROADCASTSS(m, k)
			for i, v := range x {
				VFMADD231PS(v, k, sums[r][i])
			}
		}
		for _, p := range rows {
			ADDQ(Imm(4), p)
		}
		ADDQ(number(rowBytes), at)
		DECQ(left)
		JNZ(LabelRef(label + "_dim"))
		factor := s.vector()
		VBROADCASTSS(scale, factor)
		for r := range g {
			for i, v := range sums[r] {
				VMULPS(factor, v, v)
				VMOVUPS(v, s.at(out, r, i))
			}
		}
		ADDQ(number(g*rowBytes), out)
		for range g / 3 {
			ADDQ(three, keys)
		}
		for range g % 3 {
			ADDQ(step, keys)
		}
	})
	end()
}

// weighted adds up the n values of a dim apart from what was there: short sums stay accurate.
func (s strip) weighted() {
	function("weighted"+s.suffix, "func(acc, factor, weights, values *float32, stride, n, dim int)",
		fmt.Sprintf("weighted%s writes acc * factor + the sum over n values, stride apart, of weight * value, for dim elements and %s lanes of a tile.", s.suffix, s.suffix))
	acc, factor, weights, values := pointer("acc"), pointer("factor"), pointer("weights"), pointer("values")
	step, n, dim := stride("stride"), pointer("n"), pointer("dim")
	eachGroup(dim, func(g int, label string) {
		sums := make([][]reg.VecVirtual, g)
		for r := range sums {
			sums[r] = s.list()
			for _, v := range sums[r] {
				s.zero(v)
			}
		}
		at, value, left := copied(weights), copied(values), copied(n)
		Label(label + "_key")
		x := s.list()
		for i, v := range x {
			VMOVUPS(s.at(at, 0, i), v)
		}
		for r := range g {
			k := s.vector()
			VBROADCASTSS(Mem{Base: value, Disp: 4 * r}, k)
			for i, v := range x {
				VFMADD231PS(v, k, sums[r][i])
			}
		}
		ADDQ(step, value)
		ADDQ(number(rowBytes), at)
		DECQ(left)
		JNZ(LabelRef(label + "_key"))
		for i := range s.vectors {
			f := s.vector()
			VMOVUPS(s.at(factor, 0, i), f)
			for r := range g {
				VFMADD231PS(s.at(acc, r, i), f, sums[r][i])
				VMOVUPS(sums[r][i], s.at(acc, r, i))
			}
		}
		ADDQ(number(g*rowBytes), acc)
		ADDQ(number(4*g), values)
	})
	end()
}

// maximum keeps the first where the second is NaN: VMAXPS gives its last operand then.
func (s strip) maximum() {
	function("maximum"+s.suffix, "func(m, scores *float32, n int)",
		fmt.Sprintf("maximum%s raises m to the largest of n scores in each of %s lanes of a tile. A NaN is passed over.", s.suffix, s.suffix))
	m, scores, n := pointer("m"), pointer("scores"), pointer("n")
	most := s.list()
	for i, v := range most {
		VMOVUPS(s.at(m, 0, i), v)
	}
	Label("key")
	for i, v := range most {
		x := s.vector()
		VMOVUPS(s.at(scores, 0, i), x)
		VMAXPS(v, x, v)
	}
	ADDQ(number(rowBytes), scores)
	DECQ(n)
	JNZ(LabelRef("key"))
	for i, v := range most {
		VMOVUPS(v, s.at(m, 0, i))
	}
	end()
}

// exponentials adds up in four sums, as exponentialsRow does.
func (s strip) exponentials() {
	function("exponentials"+s.suffix, "func(sum, scores, m *float32, n int)",
		fmt.Sprintf("exponentials%s makes n scores s e^(s-m), and sum their sum, in each of %s lanes of a tile.", s.suffix, s.suffix))
	sum, scores, m := pointer("sum"), pointer("scores"), pointer("m")
	e := newExp(s)
	for i := range s.vectors {
		label := fmt.Sprintf("vector%d", i)
		at, left := copied(scores), pointer("n")
		base := s.vector()
		VMOVUPS(s.at(m, 0, i), base)
		var sums [4]reg.VecVirtual
		for j := range sums {
			sums[j] = s.vector()
			s.zero(sums[j])
		}
		one := func(j, r int) {
			x := s.vector()
			VMOVUPS(s.at(at, r, i), x)
			VSUBPS(base, x, x)
			p := e.of(x)
			VMOVUPS(p, s.at(at, r, i))
			VADDPS(p, sums[j], sums[j])
		}
		Label(label)
		CMPQ(left, Imm(4))
		JL(LabelRef(label + "_rest"))
		for j := range 4 {
			one(j, j)
		}
		ADDQ(number(4*rowBytes), at)
		SUBQ(Imm(4), left)
		JMP(LabelRef(label))
		Label(label + "_rest")
		for j := range 3 {
			CMPQ(left, number(j))
			JE(LabelRef(label + "_done"))
			one(j, j)
		}
		Label(label + "_done")
		VADDPS(sums[2], sums[0], sums[0])
		VADDPS(sums[3], sums[1], sums[1])
		VADDPS(sums[1], sums[0], sums[0])
		VMOVUPS(sums[0], s.at(sum, 0, i))
	}
	end()
}

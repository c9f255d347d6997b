// Package mutation plants faults in source code, one at a time: a sum for a difference, a limit that is one off, a sine for a cosine.
// Its test runs the tests of the references and of the comparator against each: a fault that none of them notices is a formula
// that nothing checks.
package mutation

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"strconv"
)

// Mutant is one planted fault.
type Mutant struct {
	Func   string // the function that it is in
	What   string // "+ for -"
	Line   int    // of the unchanged source
	Source []byte // the whole file
}

// swaps are the operators that take each other's place.
var swaps = map[token.Token]token.Token{
	token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.QUO, token.QUO: token.MUL, token.REM: token.MUL,
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR, token.EQL: token.NEQ, token.NEQ: token.EQL,
	token.LAND: token.LOR, token.LOR: token.LAND,
	token.ADD_ASSIGN: token.SUB_ASSIGN, token.SUB_ASSIGN: token.ADD_ASSIGN, token.MUL_ASSIGN: token.QUO_ASSIGN,
}

// calls are the functions that take each other's place.
var calls = map[string]string{
	"max": "min", "min": "max", "Cos": "Sin", "Sin": "Cos", "Exp": "Exp2", "Log": "Log2", "Abs": "Sqrt", "Sqrt": "Abs", "Tanh": "Atan",
	"Floor": "Ceil", "Ceil": "Floor", "Hypot": "Max", "Pow": "Hypot",
}

// told are functions that only make words.
var told = map[string]bool{"String": true, "Error": true}

// Mutants are all mutants of a file's functions.
func Mutants(name string, source []byte) ([]Mutant, error) {
	var out []Mutant
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, source, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil || told[f.Name.Name] {
			continue
		}
		var failed error
		// plant changes the tree, renders it, and changes it back.
		plant := func(at token.Pos, what string, change, back func()) {
			change()
			defer back()
			var b bytes.Buffer
			if err := format.Node(&b, set, file); err != nil {
				failed = err
				return
			}
			out = append(out, Mutant{f.Name.Name, what, set.Position(at).Line, b.Bytes()})
		}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ReturnStmt:
				return !refusal(n)
			case *ast.BinaryExpr:
				if is, ok := swaps[n.Op]; ok && !text(n) {
					was := n.Op
					plant(n.OpPos, fmt.Sprintf("%v for %v", is, was), func() { n.Op = is }, func() { n.Op = was })
				}
			case *ast.AssignStmt:
				if is, ok := swaps[n.Tok]; ok {
					was := n.Tok
					plant(n.TokPos, fmt.Sprintf("%v for %v", is, was), func() { n.Tok = is }, func() { n.Tok = was })
				}
			case *ast.UnaryExpr:
				if n.Op == token.NOT || n.Op == token.SUB {
					was, is := n.Op, token.ADD
					if was == token.NOT { // a second one
						x := n.X
						plant(n.OpPos, "no !", func() { n.X = &ast.UnaryExpr{Op: token.NOT, X: x} }, func() { n.X = x })
						break
					}
					plant(n.OpPos, "no -", func() { n.Op = is }, func() { n.Op = was })
				}
			case *ast.BasicLit:
				if v, err := strconv.Atoi(n.Value); err == nil && n.Kind == token.INT {
					was := n.Value
					plant(n.Pos(), fmt.Sprintf("%d for %d", v+1, v), func() { n.Value = strconv.Itoa(v + 1) }, func() { n.Value = was })
				}
			case *ast.CallExpr:
				if id := called(n); id != nil {
					if at := sign(id, n); at != nil { // of which only the sign counts
						was := *at
						plant(n.Pos(), "the other infinity", func() { *at = &ast.UnaryExpr{Op: token.SUB, X: &ast.ParenExpr{X: was}} }, func() { *at = was })
						return false
					}
					if is, ok := calls[id.Name]; ok {
						was := id.Name
						plant(n.Pos(), is+" for "+was, func() { id.Name = is }, func() { id.Name = was })
					}
				}
				return !words(n)
			}
			return true
		})
		if failed != nil {
			return nil, failed
		}
	}
	return out, nil
}

// refusal says that a function returns an error, beside which nothing else counts.
func refusal(r *ast.ReturnStmt) bool {
	if len(r.Results) == 0 {
		return false
	}
	switch last := r.Results[len(r.Results)-1].(type) {
	case *ast.Ident:
		return last.Name == "err"
	case *ast.CallExpr:
		return words(last)
	}
	return false
}

// sign is the argument of math.Inf and math.IsInf, of which only the sign counts; nil where that is 0, for both.
func sign(f *ast.Ident, c *ast.CallExpr) *ast.Expr {
	if f.Name != "Inf" && f.Name != "IsInf" || len(c.Args) == 0 {
		return nil
	}
	last := &c.Args[len(c.Args)-1]
	if l, ok := (*last).(*ast.BasicLit); ok && l.Value == "0" {
		return nil
	}
	return last
}

// called is the name of a function that is called plainly, or from package math.
func called(c *ast.CallExpr) *ast.Ident {
	switch f := c.Fun.(type) {
	case *ast.Ident:
		return f
	case *ast.SelectorExpr:
		if p, ok := f.X.(*ast.Ident); ok && p.Name == "math" {
			return f.Sel
		}
	}
	return nil
}

// words says that a call only makes the text of an error.
func words(c *ast.CallExpr) bool {
	switch f := c.Fun.(type) {
	case *ast.Ident:
		return f.Name == "badShape" || f.Name == "badArgument"
	case *ast.SelectorExpr:
		p, ok := f.X.(*ast.Ident)
		return ok && p.Name == "fmt"
	}
	return false
}

// text says that an operator joins strings.
func text(b *ast.BinaryExpr) bool {
	for _, x := range []ast.Expr{b.X, b.Y} {
		if l, ok := x.(*ast.BasicLit); ok && l.Kind == token.STRING {
			return true
		}
		if inner, ok := x.(*ast.BinaryExpr); ok && text(inner) {
			return true
		}
	}
	return false
}

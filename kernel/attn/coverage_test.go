package attn_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"
)

// Every exported function and method has an example that calls it, whose output go test compares. Every exported variable and constant,
// such as an option or a number format, is used in one.
func TestExamples(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(here, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	var files []*ast.File
	for _, path := range paths {
		f, err := parser.ParseFile(set, path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	p, err := doc.NewFromFiles(set, files, "github.com/attnb/attnb/kernel/attn")
	if err != nil {
		t.Fatal(err)
	}

	shown := map[string]bool{} // of attn.X in compared examples, X
	compared := func(examples []*doc.Example) map[string]bool {
		names := map[string]bool{}
		for _, e := range examples {
			if e.Output == "" && !e.EmptyOutput {
				t.Errorf("Example%s has no output to compare", e.Name)
				continue
			}
			ast.Inspect(e.Code, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok {
					names[s.Sel.Name] = true
					if x, ok := s.X.(*ast.Ident); ok && x.Name == "attn" {
						shown[s.Sel.Name] = true
					}
				}
				return true
			})
		}
		return names
	}
	functions := 0
	need := func(of string, fs []*doc.Func) {
		for _, f := range fs {
			functions++
			if !compared(f.Examples)[f.Name] && f.Name != "String" { // which Println calls
				t.Errorf("no example of %s%s calls it", of, f.Name)
			}
		}
	}
	compared(p.Examples)
	need("", p.Funcs)
	values := append(p.Vars, p.Consts...)
	for _, of := range p.Types {
		compared(of.Examples)
		need("", of.Funcs)
		need(of.Name+".", of.Methods)
		values = append(append(values, of.Vars...), of.Consts...)
	}
	for _, v := range values {
		for _, name := range v.Names {
			if !shown[name] {
				t.Errorf("no example uses %s", name)
			}
		}
	}
	if functions < 100 {
		t.Errorf("%d functions found: this test proves nothing", functions)
	}
}

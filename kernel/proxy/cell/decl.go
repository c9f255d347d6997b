package cell

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"sort"
	"strings"
)

// Place is a line of a cell. Cell is the execution count, 0 where the cell had none; Line counts from 0.
type Place struct {
	Cell, Line int
	Source     string // the line's text
}

// decl is a top-level declaration: where it begins in its file, and the lines of the cell behind it.
type decl struct {
	keys    []string
	first   int // line of the file, from 1
	last    int
	text    string
	keyword string // what must come before text: var, const, type, import or nothing
	places  []Place
}

// Declarations are what the cells so far declared, as gonb keeps them: the newest of each name.
type Declarations struct {
	byKey map[string]*decl
}

// NewDeclarations returns none.
func NewDeclarations() *Declarations { return &Declarations{byKey: map[string]*decl{}} }

// With returns the declarations after cell number ran the Go lines of t. Where t does not parse, nothing is added.
func (d *Declarations) With(t *Text, number int) *Declarations {
	next := &Declarations{byKey: maps.Clone(d.byKey)}
	file, from := t.Compose()
	for _, n := range split(file) {
		for line := n.first; line <= n.last; line++ {
			p := Place{Cell: number, Line: NoLine}
			if line-1 < len(from) && from[line-1] != NoLine {
				p.Line = from[line-1]
				p.Source = t.Lines[p.Line]
			}
			n.places = append(n.places, p)
		}
		for _, k := range n.keys {
			if k != "_" {
				next.byKey[k] = n
			}
		}
	}
	return next
}

// Without returns the declarations after gonb forgot some names.
func (d *Declarations) Without(names ...string) *Declarations {
	next := &Declarations{byKey: maps.Clone(d.byKey)}
	for _, n := range names {
		delete(next.byKey, n)
	}
	return next
}

// Names lists what is declared, imports aside.
func (d *Declarations) Names() []string {
	var names []string
	for k := range d.byKey {
		if k != "main" && !strings.HasPrefix(k, "import ") {
			names = append(names, strings.ReplaceAll(k, "~", "."))
		}
	}
	sort.Strings(names)
	return names
}

// Replay returns the text of a cell that declares again what file holds, gonb's main.go of a cell that compiled. Names
// that are not declared any more are left out, and so is main.
func (d *Declarations) Replay(file string) string {
	var b strings.Builder
	for _, n := range split(file) {
		text := n.keyword + n.text
		if n.keys[0] == "init" {
			// gonb keeps func init_x by its name, and writes it as init.
			for k, known := range d.byKey {
				if strings.HasPrefix(k, "init_") && strings.Replace(known.text, k, "init", 1) == n.text {
					text, n.keys = known.text, []string{k}
				}
			}
		}
		if n.keys[0] == "main" || n.keyword != "import " && !slices.ContainsFunc(n.keys, func(k string) bool { return k == "_" || d.byKey[k] != nil }) {
			continue
		}
		b.WriteString(text + "\n\n")
	}
	return b.String()
}

// Locate finds the line of a cell behind a line (from 1) of mainGo, gonb's file for cell number with text t.
func (d *Declarations) Locate(mainGo string, line int, t *Text, number int) (Place, bool) {
	file, from := t.Compose()
	if mainGo == file { // it did not parse, so gonb merged nothing into it
		if line < 1 || line > len(from) {
			return Place{}, false
		}
		at := from[line-1]
		for ; at == NoLine; at = from[line-1] { // where gonb closes main: the cell ends too early
			if line--; line == 0 {
				return Place{}, false
			}
		}
		return Place{Cell: number, Line: at, Source: t.Lines[at]}, true
	}
	all := d.With(t, number)
	for _, n := range split(mainGo) {
		if line < n.first || line > n.last {
			continue
		}
		if n.keys[0] == "init" {
			for k, known := range all.byKey {
				if strings.HasPrefix(k, "init_") && strings.Replace(known.text, k, "init", 1) == n.text {
					n.keys = []string{k}
				}
			}
		}
		for _, k := range n.keys {
			known := all.byKey[k]
			if known == nil {
				continue
			}
			if i := line - n.first; i < len(known.places) && known.places[i].Line != NoLine {
				return known.places[i], true
			}
		}
	}
	return Place{}, false
}

// split returns the top-level declarations of a file, one for each spec of a group except for constants, whose group
// is one. A file that does not parse has those that come before its first error.
func split(file string) []*decl {
	fset := token.NewFileSet()
	f, _ := parser.ParseFile(fset, "", file, parser.SkipObjectResolution)
	if f == nil {
		return nil
	}
	var all []*decl
	add := func(n ast.Node, keyword string, keys ...string) {
		from, to := fset.PositionFor(n.Pos(), false), fset.PositionFor(n.End(), false)
		if !from.IsValid() || to.Offset < from.Offset { // of a declaration that breaks off
			return
		}
		all = append(all, &decl{keys: keys, first: from.Line, last: to.Line, keyword: keyword,
			text: file[from.Offset:min(to.Offset, len(file))]})
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			key := d.Name.Name
			if d.Recv != nil && len(d.Recv.List) > 0 {
				key = receiver(d.Recv.List[0].Type) + "~" + key
			}
			add(d, "", key)
		case *ast.GenDecl:
			if d.Tok == token.CONST && len(d.Specs) > 1 {
				var keys []string
				for _, s := range d.Specs {
					keys = append(keys, names(s)...)
				}
				add(d, "", keys...)
				continue
			}
			for _, s := range d.Specs {
				add(s, d.Tok.String()+" ", names(s)...)
			}
		}
	}
	return all
}

func names(s ast.Spec) []string {
	switch s := s.(type) {
	case *ast.TypeSpec:
		return []string{s.Name.Name}
	case *ast.ValueSpec:
		var keys []string
		for _, n := range s.Names {
			keys = append(keys, n.Name)
		}
		return keys
	case *ast.ImportSpec:
		key := "import " + s.Path.Value
		if s.Name != nil {
			key = "import " + s.Name.Name + " " + s.Path.Value
		}
		return []string{key}
	}
	return nil
}

func receiver(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.Ident:
		return t.Name
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.ParenExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.IndexListExpr:
		return receiver(t.X)
	}
	return ""
}

package toolchain

import (
	"encoding/hex"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"hash/fnv"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/attnb/attnb/kernel/spec"
)

const attnPath = spec.Module + "/kernel/attn"

// onceFlag is the linker flag that tells the program the hash of each attn.Once in it, so that it is computed again when
// its text changes, or the text of anything that it is made of:
//
//	-X github.com/attnb/attnb/kernel/attn.onceHashes=NAME=HASH;NAME=HASH
//
// An empty NAME stands for every name that is not in the list. The flag is "" for a cell without attn.Once, or one that
// does not parse: the build says why.
func onceFlag(dir string) string {
	value := onceValue(onceHashes(dir))
	if value == "" {
		return ""
	}
	return "-X " + quoteFlag(value)
}

// onceValue is what follows -X, or "".
func onceValue(hashes map[string]string) string {
	if len(hashes) == 0 {
		return ""
	}
	entries := make([]string, 0, len(hashes))
	for name, hash := range hashes {
		entries = append(entries, name+"="+hash)
	}
	sort.Strings(entries)
	return attnPath + ".onceHashes=" + strings.Join(entries, ";")
}

// quoteFlag writes a flag so that it stays one among others in -ldflags.
func quoteFlag(flag string) string {
	if strings.ContainsAny(flag, " \"") {
		return "'" + flag + "'"
	}
	return flag
}

// plain says whether a name can stand in the flag, which has no escapes.
func plain(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool { return r == ';' || r == '\'' || unicode.IsControl(r) || r == utf8.RuneError })
}

// onceHashes maps the name of each attn.Once in the Go files of dir to a hash of its text and, transitively, of the
// text of the top-level declarations that it refers to by name. What it refers to is taken as it is written, whether or
// not something local hides it: at worst a tensor is computed once more than needed. Under "" stands one hash for all
// whose name is not written as a plain string.
func onceHashes(dir string) map[string]string {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil
	}
	cell := newSources()
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil || cell.add(name, text) != nil {
			return nil
		}
	}
	return cell.hashes()
}

// node is a piece of a source file.
type node struct {
	ast.Node
	source *source
}

type source struct {
	text    []byte
	file    *ast.File
	imports map[string]string // name in this file -> path
	paths   []string          // of all imports
}

// sources are the files of a cell and what they declare.
type sources struct {
	fset  *token.FileSet
	files []*source
	decls map[string][]node // by name: declarations, and with a type its methods
}

func newSources() *sources {
	return &sources{fset: token.NewFileSet(), decls: map[string][]node{}}
}

func (s *sources) add(name string, text []byte) error {
	file, err := parser.ParseFile(s.fset, name, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	src := &source{text: text, file: file, imports: map[string]string{}}
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return err
		}
		src.paths = append(src.paths, path)
		name := path[strings.LastIndexByte(path, '/')+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		src.imports[name] = path
	}
	for _, decl := range file.Decls {
		s.declare(src, decl)
	}
	s.files = append(s.files, src)
	return nil
}

func (s *sources) declare(src *source, decl ast.Decl) {
	put := func(name string, n ast.Node) { s.decls[name] = append(s.decls[name], node{n, src}) }
	switch d := decl.(type) {
	case *ast.FuncDecl:
		switch {
		case d.Recv == nil:
			put(d.Name.Name, d)
		case len(d.Recv.List) == 1:
			put(receiver(d.Recv.List[0].Type), d)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch sp := spec.(type) {
			case *ast.TypeSpec:
				put(sp.Name.Name, sp)
			case *ast.ValueSpec:
				var n ast.Node = sp
				if d.Tok == token.CONST && d.Lparen.IsValid() {
					n = d // iota and omitted values make the group one
				}
				for _, name := range sp.Names {
					put(name.Name, n)
				}
			}
		}
	}
}

// receiver is the name of a receiver's type, without * and type parameters.
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

func (s *sources) hashes() map[string]string {
	texts := map[string][]string{}
	for _, src := range s.files {
		ast.Inspect(src.file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if name, ok := src.once(call); ok {
					texts[name] = append(texts[name], s.closure(node{call, src}))
				}
			}
			return true
		})
	}
	hashes := make(map[string]string, len(texts))
	for name, parts := range texts {
		sort.Strings(parts)
		sum := fnv.New128a() // the cryptographic ones take longer to initialise than to run
		_, _ = sum.Write([]byte(strings.Join(parts, "\x00\x00")))
		hashes[name] = hex.EncodeToString(sum.Sum(nil))
	}
	return hashes
}

// once recognises attn.Once(name, ...), under whatever name attn is imported. name is "" where it is no plain string.
func (src *source) once(call *ast.CallExpr) (name string, ok bool) {
	fun := call.Fun
	switch f := fun.(type) { // explicit type arguments
	case *ast.IndexExpr:
		fun = f.X
	case *ast.IndexListExpr:
		fun = f.X
	}
	switch f := fun.(type) {
	case *ast.SelectorExpr:
		pkg, isName := f.X.(*ast.Ident)
		if !isName || f.Sel.Name != "Once" || src.imports[pkg.Name] != attnPath {
			return "", false
		}
	case *ast.Ident:
		if f.Name != "Once" || src.imports["."] != attnPath {
			return "", false
		}
	default:
		return "", false
	}
	if len(call.Args) == 0 {
		return "", false
	}
	if lit, isLit := call.Args[0].(*ast.BasicLit); isLit && lit.Kind == token.STRING {
		if name, err := strconv.Unquote(lit.Value); err == nil && plain(name) {
			return name, true
		}
	}
	return "", true
}

// closure is the text of n and of the declarations that it refers to, in an order that depends on nothing else.
func (s *sources) closure(n node) string {
	seen := map[ast.Node]bool{}
	var texts []string
	var visit func(node)
	visit = func(n node) {
		if seen[n.Node] {
			return
		}
		seen[n.Node] = true
		texts = append(texts, s.tokens(n))
		names(n.Node, func(name string) { s.follow(name, n.source, &texts, visit) })
	}
	visit(n)
	root := texts[0]
	sort.Strings(texts)
	return root + "\x00" + strings.Join(texts, "\x00")
}

// names calls found with each name in n that can stand for a declaration: not with what a selector selects.
func names(n ast.Node, found func(string)) {
	ast.Inspect(n, func(inner ast.Node) bool {
		switch x := inner.(type) {
		case *ast.SelectorExpr:
			names(x.X, found)
			return false
		case *ast.Ident:
			found(x.Name)
		}
		return true
	})
}

// follow visits what name stands for: declarations of the cell, or an imported package.
func (s *sources) follow(name string, src *source, texts *[]string, visit func(node)) {
	for _, decl := range s.decls[name] {
		visit(decl)
	}
	if path, ok := src.imports[name]; ok {
		*texts = append(*texts, "import "+name+" "+path)
	}
}

// tokens is the text of n without comments and white space.
func (s *sources) tokens(n node) string {
	file := s.fset.File(n.Pos())
	start := file.Offset(n.Pos())
	text := n.source.text[start:file.Offset(n.End())]
	var scan scanner.Scanner
	scan.Init(token.NewFileSet().AddFile("", -1, len(text)), text, nil, 0)
	var out strings.Builder
	for {
		_, tok, lit := scan.Scan()
		if tok == token.EOF {
			return out.String()
		}
		if tok == token.SEMICOLON {
			lit = ";" // written or implied by a new line
		}
		out.WriteString(tok.String())
		out.WriteByte(' ')
		out.WriteString(lit)
		out.WriteByte('\n')
	}
}

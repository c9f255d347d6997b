package toolchain

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/attnb/attnb/kernel/spec"
)

// goimports does what `goimports args...` does to the imports of a cell: those that are unused go, those that are missing
// come, as long as they are well-known packages of the standard library. All else is for the real goimports. gonb takes
// nothing but the imports from the result, so the layout stays.
func goimports(args []string) int {
	home, err := spec.FindHome()
	if err != nil {
		return fail("%v", err)
	}
	if len(args) == 2 && args[0] == "-w" && isCell(filepath.Dir(args[1])) && tidyImports(args[1], home, os.Getenv("PATH")) {
		return 0
	}
	return become(home.Goimports(), args, os.Environ())
}

// tidyImports corrects the imports of file, and says whether it could.
func tidyImports(file string, home spec.Home, searchPath string) bool {
	text, err := os.ReadFile(file)
	if err != nil {
		return false
	}
	real, err := realGo(home, searchPath)
	if err != nil {
		return false
	}
	if !onlyGoFile(file) { // others may say which package is meant
		return false
	}
	tidy, ok := usedImports(text, goroot(real))
	if !ok {
		return false
	}
	return string(tidy) == string(text) || os.WriteFile(file, tidy, 0o644) == nil
}

// onlyGoFile says whether no Go file stands beside this one.
func onlyGoFile(file string) bool {
	files, err := filepath.Glob(filepath.Join(filepath.Dir(file), "*.go"))
	return err == nil && len(files) == 1
}

// usedImports blanks out the unused imports in a source text and adds the missing ones. It finds out what is used as
// goimports does: by the selectors of exported names on identifiers that nothing in the file declares.
func usedImports(text []byte, goroot string) ([]byte, bool) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "", text, parser.ParseComments|parser.AllErrors)
	if err != nil || bytes.Contains(text, []byte("//go:embed")) { // that needs an import without a name
		return nil, false
	}
	used := references(file)
	text = slices.Clone(text)
	blank := func(n ast.Node) {
		tokens := fset.File(n.Pos())
		for i := tokens.Offset(n.Pos()); i < tokens.Offset(n.End()); i++ {
			if text[i] != '\n' {
				text[i] = ' '
			}
		}
	}
	there := map[string]bool{}
	for _, decl := range file.Decls {
		d, ok := decl.(*ast.GenDecl)
		if !ok || d.Tok != token.IMPORT {
			continue
		}
		for _, entry := range d.Specs {
			imported := entry.(*ast.ImportSpec)
			name, ok := importName(imported, goroot)
			if !ok || there[name] {
				return nil, false
			}
			there[name] = name != "_"
			switch {
			case name == "_" || used[name] != nil:
			case d.Lparen.IsValid():
				blank(imported)
			default:
				blank(d)
			}
		}
	}
	var added strings.Builder
	for _, name := range slices.Sorted(maps.Keys(used)) {
		if there[name] {
			continue
		}
		if !exportsAll(name, used[name]) {
			return nil, false
		}
		added.WriteString("; import " + strconv.Quote(name))
	}
	return slices.Insert(text, fset.File(file.Pos()).Offset(file.Name.End()), []byte(added.String())...), true
}

// exportsAll says whether a package is known to export these names.
func exportsAll(name string, selected []string) bool {
	known := strings.Fields(exports[name])
	return !slices.ContainsFunc(selected, func(s string) bool { return !slices.Contains(known, s) })
}

// references are the identifiers in file that can only stand for a package, and what is selected from each.
func references(file *ast.File) map[string][]string {
	names := map[string][]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		if selector, ok := n.(*ast.SelectorExpr); ok {
			// What the parser resolves is a declaration of the file.
			if x, ok := selector.X.(*ast.Ident); ok && x.Obj == nil && selector.Sel.IsExported() { //nolint:staticcheck // as goimports does
				names[x.Name] = append(names[x.Name], selector.Sel.Name)
			}
		}
		return true
	})
	return names
}

// importName is the name that an import has in its file. It is known when it is written there, and for packages of the
// standard library and of this module: the last element of the path, or the one before a version.
func importName(imported *ast.ImportSpec, goroot string) (string, bool) {
	importPath, err := strconv.Unquote(imported.Path.Value)
	if err != nil || importPath == "C" || importPath == "" {
		return "", false
	}
	if imported.Name != nil {
		return imported.Name.Name, imported.Name.Name != "."
	}
	if !within(importPath, spec.Module) && (goroot == "" || !exists(filepath.Join(goroot, "src", importPath))) {
		return "", false
	}
	name := path.Base(importPath)
	if _, err := strconv.Atoi(name[1:]); err == nil && name[0] == 'v' && name != importPath {
		name = path.Base(path.Dir(importPath))
	}
	return name, token.IsIdentifier(name)
}

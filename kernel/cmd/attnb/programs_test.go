package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// shells run text.
var shells = []string{"sh", "bash", "dash", "zsh", "ksh", "fish", "cmd", "cmd.exe", "powershell", "env", "eval", "xargs"}

// shellCalls returns the places in a file where a shell may be started.
func shellCalls(set *token.FileSet, file *ast.File) (found []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		name, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		of, ok := name.X.(*ast.Ident)
		starts := ok && (of.Name == "exec" && strings.HasPrefix(name.Sel.Name, "Command") ||
			(of.Name == "syscall" || of.Name == "unix") && slices.Contains([]string{"Exec", "ForkExec", "StartProcess"}, name.Sel.Name) ||
			of.Name == "os" && name.Sel.Name == "StartProcess")
		if !starts {
			return true
		}
		program := call.Args[0]
		if name.Sel.Name == "CommandContext" {
			program = call.Args[1]
		}
		if lit, ok := program.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, _ := strconv.Unquote(lit.Value); slices.Contains(shells, filepath.Base(text)) {
				found = append(found, set.Position(call.Pos()).String())
			}
		}
		return true
	})
	return found
}

// No program of ours starts a shell, so that no name, path or label that a user gives is ever read as a command. What users write in `!`
// lines is theirs, and GoNB's.
func TestNoShellIsStarted(t *testing.T) {
	set := token.NewFileSet()
	files := 0
	err := filepath.WalkDir("../../..", func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(name, ".") && len(name) > 2 || name == "build" || name == "testdata"):
			return fs.SkipDir
		case filepath.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go"):
			file, err := parser.ParseFile(set, path, nil, 0)
			if err != nil {
				return err
			}
			files++
			for _, at := range shellCalls(set, file) {
				t.Errorf("%s: a shell", at)
			}
		}
		return nil
	})
	if err != nil || files < 100 {
		t.Errorf("%d files, %v", files, err)
	}
	file, err := parser.ParseFile(set, "shell.go", `package p; func f() { exec.CommandContext(ctx, "/bin/sh", "-c", x); exec.Command("env", "sh"); exec.Command("go") }`, 0)
	if found := shellCalls(set, file); err != nil || len(found) != 2 {
		t.Errorf("found %q where there are two, %v", found, err)
	}
}

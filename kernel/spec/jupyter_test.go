package spec

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func executableFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
}

// What a Jupyter has is told by the Python that runs it.
func TestExamineJupyter(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	if f := examineJupyter(t.Context()); len(f) != 1 || f[0].State != Absent || f[0].Cost == "" {
		t.Errorf("without Jupyter: %+v", f)
	}
	python := filepath.Join(dir, "env", "python3.12")
	executableFile(t, python, "#!/bin/sh\necho jupyterlab 4.5.0\necho ipywidgets\n")
	executableFile(t, filepath.Join(dir, "jupyter"), "#!"+python+"\n")
	got := examineJupyter(t.Context())
	if !slices.Equal(got, []Finding{
		{Name: "jupyter", Detail: filepath.Join(dir, "jupyter")}, {Name: "jupyterlab", Detail: "4.5.0"},
		{Name: "ipywidgets", State: Absent, Detail: "not in " + python, Cost: ofJupyter[1].cost},
		{Name: "anywidget", State: Absent, Detail: "not in " + python, Cost: ofJupyter[2].cost},
	}) {
		t.Errorf("%+v", got)
	}
	executableFile(t, python, "#!/bin/sh\nexit 1\n")
	if f := examineJupyter(t.Context()); len(f) != 1 || f[0].State != Absent || f[0].Cost == "" {
		t.Errorf("a Python that fails: %+v", f)
	}
}

func TestPythonOf(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "jupyter")
	if got := pythonOf(script); got != "python3" {
		t.Errorf("of nothing: %s", got)
	}
	executableFile(t, script, "#!/bin/sh\n'''exec' /long/path/python \"$0\"\n")
	beside := filepath.Join(dir, "python3")
	executableFile(t, beside, "")
	link := filepath.Join(t.TempDir(), "jupyter")
	if err := os.Symlink(script, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{script, link} {
		if got := pythonOf(path); got != beside {
			t.Errorf("%s: %s, want the one beside the script", path, got)
		}
	}
	executableFile(t, script, "#!/usr/bin/env python3\n")
	if got := pythonOf(script); got != beside {
		t.Errorf("%s", got)
	}
}

func TestExamineRecipes(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	if f := examineRecipes(); f.State != Good || f.Detail != Recipes() {
		t.Errorf("%+v", f)
	}
	if entries, err := os.ReadDir(Recipes()); err != nil || len(entries) != 0 {
		t.Errorf("it left %v, %v", entries, err)
	}
	file := filepath.Join(t.TempDir(), "file")
	executableFile(t, file, "")
	t.Setenv("XDG_CACHE_HOME", file)
	t.Setenv("HOME", file)
	if f := examineRecipes(); f.State != Absent || f.Cost == "" {
		t.Errorf("%+v", f)
	}
}

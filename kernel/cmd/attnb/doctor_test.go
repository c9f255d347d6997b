package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attnb/attnb/cudaops/devices"
	"github.com/attnb/attnb/kernel/spec"
)

// script is a program that stands where attnb should.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "attnb")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func find(t *testing.T, findings []spec.Finding, name string) spec.Finding {
	t.Helper()
	for _, f := range findings {
		if f.Name == name {
			return f
		}
	}
	t.Fatalf("nothing about %s in %+v", name, findings)
	return spec.Finding{}
}

func expect(t *testing.T, f spec.Finding, state spec.State, words string) {
	t.Helper()
	if f.State != state || !strings.Contains(f.Detail, words) || (f.Cost == "") != (state == spec.Good) {
		t.Errorf("%+v, want %v with %q, and a cost where it is not in order", f, state, words)
	}
}

func TestExamineSettings(t *testing.T) {
	t.Setenv(devices.MemoryVariable, "")
	t.Setenv(devices.Variable, "host")
	findings := examineBackend()
	expect(t, find(t, findings, "device"), spec.Good, "backend host")
	expect(t, find(t, findings, "memory for tensors"), spec.Good, " GiB")

	t.Setenv(devices.MemoryVariable, "2GiB")
	expect(t, find(t, examineBackend(), "memory for tensors"), spec.Good, "2.0 GiB")
	t.Setenv(devices.Variable, "abacus")
	expect(t, find(t, examineBackend(), "device"), spec.Faulty, "ATTNB_DEVICE=abacus: want host")

	check := func(v string) error {
		_, err := devices.ParseMemory(v)
		return err
	}
	expect(t, setting(devices.MemoryVariable, "all", check), spec.Good, "2GiB")
	t.Setenv(devices.MemoryVariable, "lots")
	expect(t, setting(devices.MemoryVariable, "all", check), spec.Faulty, "ATTNB_MEMORY=lots")
	t.Setenv(devices.MemoryVariable, "")
	expect(t, setting(devices.MemoryVariable, "all", check), spec.Good, "not set: all")
}

func TestExamineDriver(t *testing.T) {
	file := filepath.Join(t.TempDir(), "version")
	expect(t, examineDriver(file), spec.Absent, "no "+file)
	if err := os.WriteFile(file, []byte("NVRM version: NVIDIA  Kernel Module  570.1\nGCC\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, examineDriver(file), spec.Good, "NVIDIA Kernel Module 570.1")
}

// The installed program must be of this version, for the kernel and for the device process.
func TestExamineVersion(t *testing.T) {
	expect(t, examineVersion(t.Context(), script(t, "echo attnb "+version)), spec.Good, version)
	expect(t, examineVersion(t.Context(), script(t, "echo attnb 0.0.1")), spec.Faulty, "is 0.0.1")
	expect(t, examineVersion(t.Context(), "/no/such/attnb"), spec.Faulty, "/no/such/attnb")
}

func TestExamineProcess(t *testing.T) {
	t.Setenv("ATTNB_TEST_MAIN", "1")
	t.Setenv(devices.Variable, "host")
	expect(t, examineProcess(t.Context(), os.Args[0]), spec.Good, "serves host on ")
	t.Setenv(devices.Variable, "abacus")
	expect(t, examineProcess(t.Context(), os.Args[0]), spec.Faulty, "want host, cuda")
	expect(t, examineProcess(t.Context(), script(t, "echo no luck >&2; exit 3")), spec.Faulty, "no luck")
	expect(t, examineProcess(t.Context(), "/no/such/attnb"), spec.Faulty, "/no/such/attnb")
}

func TestDoctorSaysAllOfTheDevice(t *testing.T) {
	t.Setenv(devices.Variable, "host")
	findings := examineDevice(t.Context(), spec.Home{Root: t.TempDir()})
	var out bytes.Buffer
	if spec.Print(&out, findings) {
		t.Errorf("an empty home is in order:\n%s", &out)
	}
	for _, name := range []string{devices.Variable, devices.MemoryVariable, "NVIDIA driver", "device", "memory for tensors", "version", "device process"} {
		find(t, findings, name)
	}
}

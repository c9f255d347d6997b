package runtimedir

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Marked returns the processes whose environment names the directory at path.
func Marked(path string) []int {
	want := []byte(EnvRuntime + "=" + path)
	var pids []int
	for _, pid := range all() {
		env, err := os.ReadFile(procFile(pid, "environ"))
		if err != nil {
			continue // ended, or another user's
		}
		for v := range bytes.SplitSeq(env, []byte{0}) {
			if bytes.Equal(v, want) {
				pids = append(pids, pid)
				break
			}
		}
	}
	return pids
}

// Children returns the processes that pid started and that still run.
func Children(pid int) []int {
	var pids []int
	// One file a thread: a child belongs to the thread that started it.
	threads, _ := filepath.Glob(procFile(pid, "task/*/children"))
	for _, t := range threads {
		b, err := os.ReadFile(t)
		if err != nil {
			continue
		}
		for _, f := range strings.Fields(string(b)) {
			if n, err := strconv.Atoi(f); err == nil {
				pids = append(pids, n)
			}
		}
	}
	return pids
}

// Name returns the program's name as the kernel knows it, at most 15 bytes.
func Name(pid int) string {
	b, err := os.ReadFile(procFile(pid, "comm"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// State returns the process state letter of proc(5), or 0 where there is no such process.
func State(pid int) byte {
	b, err := os.ReadFile(procFile(pid, "stat"))
	if err != nil {
		return 0
	}
	// The name, in parentheses, may hold anything.
	if i := bytes.LastIndexByte(b, ')'); i >= 0 && i+2 < len(b) {
		return b[i+2]
	}
	return 0
}

func all() []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var pids []int
	for _, n := range names {
		if pid, err := strconv.Atoi(n); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

func procFile(pid int, name string) string {
	return filepath.Join("/proc", strconv.Itoa(pid), name)
}

//go:build !linux

package runtimedir

import (
	"os/exec"
	"strconv"
	"strings"
)

// Marked returns the processes whose environment names the directory at path, as ps shows it for one's own.
func Marked(path string) []int {
	out, err := exec.Command("ps", "-E", "-x", "-ww", "-o", "pid=,command=").Output()
	if err != nil {
		return nil
	}
	var pids []int
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		for _, word := range f {
			if word == EnvRuntime+"="+path {
				if pid, err := strconv.Atoi(f[0]); err == nil {
					pids = append(pids, pid)
				}
				break
			}
		}
	}
	return pids
}

// Children returns the processes that pid started and that still run.
func Children(pid int) []int {
	out, err := exec.Command("pgrep", "-P", strconv.Itoa(pid)).Output()
	if err != nil {
		return nil
	}
	var pids []int
	for f := range strings.FieldsSeq(string(out)) {
		if n, err := strconv.Atoi(f); err == nil {
			pids = append(pids, n)
		}
	}
	return pids
}

// Name returns the program's name.
func Name(pid int) string {
	out, err := exec.Command("ps", "-o", "comm=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return ""
	}
	name := strings.TrimSpace(string(out))
	return name[strings.LastIndexByte(name, '/')+1:]
}

// State returns the process state letter, or 0 where there is no such process.
func State(pid int) byte {
	out, err := exec.Command("ps", "-o", "state=", "-p", strconv.Itoa(pid)).Output()
	if err != nil || len(out) == 0 {
		return 0
	}
	return out[0]
}

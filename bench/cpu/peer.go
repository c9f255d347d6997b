package main

import (
	"bufio"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

//go:embed peer.py
var peerProgram string

// peer is a Python process with PyTorch, which says at its top what it answers.
type peer struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	dir   string // for arrays
	facts struct {
		Torch   string `json:"torch"`
		Vectors string `json:"vectors"`
	}
}

func startPeer(python string, threads int) (*peer, error) {
	dir, err := os.MkdirTemp("", "attnb-bench-")
	if err != nil {
		return nil, err
	}
	p := &peer{cmd: exec.Command(python, "-c", peerProgram), dir: dir}
	p.cmd.Stderr = os.Stderr
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	return p, p.ask(map[string]any{"threads": threads}, &p.facts)
}

func (p *peer) close() error {
	_ = p.in.Close()
	err := p.cmd.Wait()
	_ = os.RemoveAll(p.dir)
	return err
}

func (p *peer) ask(question, answer any) error {
	text, err := json.Marshal(question)
	if err != nil {
		return err
	}
	if _, err := p.in.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("PyTorch: %w", err)
	}
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("PyTorch ended: %w", err)
	}
	return json.Unmarshal(line, answer)
}

// prepare gives the op's inputs to PyTorch, and returns its results by the names of its ways to compute them.
func (p *peer) prepare(c *benchCase) (map[string][]float32, []string, error) {
	ask := map[string]any{"op": c.op, "causal": c.causal, "scale": c.scale, "out": filepath.Join(p.dir, "out")}
	var shapes [][3]int
	var files []string
	for i, x := range c.in {
		path := filepath.Join(p.dir, fmt.Sprint("in", i))
		bytes := make([]byte, 0, 4*len(x.data))
		for _, v := range x.data {
			bytes = binary.LittleEndian.AppendUint32(bytes, math.Float32bits(v))
		}
		if err := os.WriteFile(path, bytes, 0o600); err != nil {
			return nil, nil, err
		}
		shapes, files = append(shapes, [3]int{x.h, x.s, x.d}), append(files, path)
	}
	ask["shapes"], ask["files"] = shapes, files
	var answer struct {
		Peers []string `json:"peers"`
	}
	if err := p.ask(ask, &answer); err != nil {
		return nil, nil, err
	}
	results := map[string][]float32{}
	for _, name := range answer.Peers {
		bytes, err := os.ReadFile(filepath.Join(p.dir, "out."+name))
		if err != nil {
			return nil, nil, err
		}
		for ; len(bytes) >= 4; bytes = bytes[4:] {
			results[name] = append(results[name], math.Float32frombits(binary.LittleEndian.Uint32(bytes)))
		}
	}
	return results, answer.Peers, nil
}

// run times n runs.
func (p *peer) run(name string, n int) (time.Duration, error) {
	var answer struct {
		Seconds float64 `json:"seconds"`
	}
	err := p.ask(map[string]any{"peer": name, "runs": n}, &answer)
	return time.Duration(answer.Seconds * float64(time.Second)), err
}

// Command share measures what the users of one machine take from each other: how long a small op of one kernel's device process takes
// while device processes of other kernels are busy with long ones, on the same GPU or on the same cores.
//
//	make build-cuda && go run ./bench/share -attnb bin/attnb
//
// The small op is a prefill of [heads 4, seq 64, dim 64] and the download of its result. It is done again and again, with random
// pauses, so that it meets the long ops at any moment of theirs. A table goes to stdout.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/attnb/attnb/kernel/wire"
)

// load is what the others do meanwhile: prefills of [heads, rows, dim], one after the other, each in one or more launches.
type load struct {
	what             string
	processes        int
	heads, rows, dim int
	softcap          bool   // by the kernel of variants, which is not built for speed
	products         string // ATTNB_PRODUCTS
	ahead            int    // ops that are queued at a time
}

var gpuLoads = []load{
	{what: "nothing"},
	{what: "prefill", processes: 1, heads: 32, rows: 65536, dim: 128, ahead: 1},
	{what: "prefill, 8 queued", processes: 1, heads: 32, rows: 65536, dim: 128, ahead: 8},
	{what: "prefill, FFMA", processes: 1, heads: 32, rows: 65536, dim: 128, products: "ffma", ahead: 1},
	{what: "prefill, softcap", processes: 1, heads: 32, rows: 32768, dim: 128, softcap: true, ahead: 1},
	{what: "prefill", processes: 3, heads: 32, rows: 65536, dim: 128, ahead: 1},
	{what: "prefill", processes: 11, heads: 32, rows: 65536, dim: 128, ahead: 1},
}

var hostLoads = []load{
	{what: "nothing"},
	{what: "prefill", processes: 1, heads: 32, rows: 4096, dim: 128, ahead: 1},
	{what: "prefill", processes: 3, heads: 32, rows: 4096, dim: 128, ahead: 1},
	{what: "prefill", processes: 11, heads: 32, rows: 4096, dim: 128, ahead: 1},
}

func main() {
	attnb := flag.String("attnb", filepath.Join("bin", "attnb"), "the `program` whose device processes are measured")
	device := flag.String("device", "auto", "`device` of all of them, as in ATTNB_DEVICE")
	times := flag.Int("times", 200, "how often the small op is done under each load")
	flag.Parse()
	if err := run(*attnb, *device, *times); err != nil {
		fmt.Fprintln(os.Stderr, "share:", err)
		os.Exit(1)
	}
}

func run(attnb, device string, times int) error {
	attnb, err := filepath.Abs(attnb)
	if err != nil {
		return err
	}
	small, err := start(attnb, device, "")
	if err != nil {
		return err
	}
	defer small.end()
	status, err := small.Status()
	if err != nil {
		return err
	}
	loads := hostLoads
	if status.Backend == "cuda" {
		loads = gpuLoads
	}
	fmt.Printf("%s: %s, %s\n", status.Backend, status.Device, time.Now().UTC().Format(time.DateTime))
	fmt.Println("| the others | processes | one of their ops | small op, median | 99% | longest |")
	fmt.Println("|---|---|---|---|---|---|")
	for _, l := range loads {
		if err := l.measure(attnb, device, small, times); err != nil {
			return fmt.Errorf("%s: %w", l.what, err)
		}
	}
	return freed(attnb, device, status)
}

// freed says when a process gets the memory that another one has freed: of a GPU, three quarters of it, of which each asks for all.
func freed(attnb, device string, status wire.Status) error {
	if status.Backend != "cuda" {
		return nil
	}
	const rows, dim = 65536, 128
	heads := status.Total / 4 * 3 / (4 * rows * dim)
	fill := func(p *process) error {
		x, err := p.random(1, rows, dim)
		if err != nil {
			return err
		}
		var held []int
		for range heads { // each is an array of its own
			y, err := p.op(wire.OpAdd, wire.Params{}, x, x)
			if err != nil {
				return err
			}
			held = append(held, y)
		}
		_, err = p.Do(wire.Request{Kind: wire.KindFree, IDs: append(held, x)})
		return err
	}
	first, err := start(attnb, device, "")
	if err != nil {
		return err
	}
	defer first.end()
	second, err := start(attnb, device, "")
	if err != nil {
		return err
	}
	defer second.end()
	if err := fill(first); err != nil {
		return fmt.Errorf("%d arrays of %d MiB: %w", heads, rows*dim>>18, err)
	}
	began := time.Now()
	for {
		err := fill(second)
		if err == nil {
			break
		}
		if time.Since(began) > 30*time.Second {
			return fmt.Errorf("what another process freed is not to be had: %w", err)
		}
		second.end()
		if second, err = start(attnb, device, ""); err != nil {
			return err
		}
	}
	fmt.Printf("\n%d GiB that one process has freed are to be had by another after %.1f s\n", heads*rows*dim>>28, time.Since(began).Seconds())
	return nil
}

// measure prints a line of the table.
func (l load) measure(attnb, device string, small *process, times int) error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	each := make(chan result, l.processes)
	busy := make(chan struct{}, l.processes)
	for range l.processes {
		p, err := start(attnb, device, l.products)
		if err != nil {
			return err
		}
		defer p.end()
		go func() { each <- l.repeat(ctx, p, busy) }()
	}
	for range l.processes {
		select {
		case <-busy:
		case r := <-each:
			return r.err
		}
	}
	took, err := small.small(times)
	if err != nil {
		return err
	}
	stop()
	var long []time.Duration
	for range l.processes {
		r := <-each
		if r.err != nil {
			return r.err
		}
		long = append(long, r.took...)
	}
	what, op := l.what, ""
	if l.processes > 0 {
		what = fmt.Sprintf("%s H %d d %d S %d", l.what, l.heads, l.dim, l.rows)
		slices.Sort(long)
		op = ms(long[len(long)/2])
	}
	slices.Sort(took)
	fmt.Printf("| %s | %d | %s | %s | %s | %s |\n", what, l.processes, op, ms(took[len(took)/2]), ms(took[len(took)*99/100]), ms(took[len(took)-1]))
	return nil
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d.Nanoseconds())/1e6) }

type result struct {
	took []time.Duration
	err  error
}

// repeat does long ops until ctx ends, of which it says how long each took. It tells busy that one has begun.
func (l load) repeat(ctx context.Context, p *process, busy chan<- struct{}) (r result) {
	const first = 1024 // rows that are sent; the others are made of them on the device
	x, err := p.random(l.heads, min(first, l.rows), l.dim)
	for rows := first; err == nil && rows < l.rows; rows *= 2 {
		x, err = p.op(wire.OpAppend, wire.Params{}, x, x)
	}
	params := wire.Params{Mask: wire.MaskCausal}
	if l.softcap {
		params.Softcap = 50
	}
	for told := false; err == nil && (ctx.Err() == nil || len(r.took) == 0); {
		began := time.Now()
		out := make([]int, l.ahead)
		for i := range out {
			if out[i], err = p.op(wire.OpPrefill, params, x, x, x); err != nil {
				return result{err: err}
			}
			if !told {
				told = true
				busy <- struct{}{}
			}
		}
		var row int
		if row, err = p.op(wire.OpRows, wire.Params{Index: 0, Count: 1}, out[l.ahead-1]); err != nil {
			break
		}
		_, err = p.Download(wire.Request{Kind: wire.KindDownload, IDs: []int{row}})
		r.took = append(r.took, time.Since(began)/time.Duration(l.ahead))
		if err == nil {
			_, err = p.Do(wire.Request{Kind: wire.KindFree, IDs: append(out, row)})
		}
	}
	r.err = err
	return r
}

// small does the small op, and says how long each took.
func (p *process) small(times int) (took []time.Duration, err error) {
	x, err := p.random(4, 64, 64)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := 0; err == nil && i < times; i++ {
		time.Sleep(time.Duration(rng.Int64N(int64(10 * time.Millisecond))))
		began := time.Now()
		var out int
		if out, err = p.op(wire.OpPrefill, wire.Params{Mask: wire.MaskCausal}, x, x, x); err != nil {
			break
		}
		if _, err = p.Download(wire.Request{Kind: wire.KindDownload, IDs: []int{out}}); err != nil {
			break
		}
		took = append(took, time.Since(began))
		_, err = p.Do(wire.Request{Kind: wire.KindFree, IDs: []int{out}})
	}
	return took, err
}

// process is a device process with a connection.
type process struct {
	*wire.Conn
	cmd   *exec.Cmd
	ended chan struct{}
	dir   string
}

// startLimit is how long one may take to serve: a GPU's context is made first, and another process may be doing the same.
const startLimit = 60 * time.Second

func start(attnb, device, products string) (*process, error) {
	dir, err := os.MkdirTemp("", "attnb-share-")
	if err != nil {
		return nil, err
	}
	p := &process{dir: dir, cmd: exec.Command(attnb, "device", "--socket", filepath.Join(dir, "s")), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), "ATTNB_DEVICE="+device, "ATTNB_PRODUCTS="+products, wire.EnvNonce+"=")
	var said strings.Builder
	p.cmd.Stderr = &said
	if err := p.cmd.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	for end := time.Now().Add(startLimit); ; {
		if p.Conn, err = wire.DialAs(filepath.Join(dir, "s"), ""); err == nil {
			return p, nil
		}
		select {
		case <-p.ended:
		case <-time.After(time.Until(end)):
		case <-time.After(5 * time.Millisecond):
			continue
		}
		p.end()
		return nil, fmt.Errorf("%w: %s", err, strings.TrimSpace(said.String()))
	}
}

// end is sudden: what the process computes is of no more use.
func (p *process) end() {
	if p.Conn != nil {
		p.Close()
	}
	_ = p.cmd.Process.Kill()
	<-p.ended
	_ = os.RemoveAll(p.dir)
}

func (p *process) random(heads, rows, dim int) (int, error) {
	rng := rand.New(rand.NewPCG(3, 4))
	data := make([]float32, heads*rows*dim)
	for i := range data {
		data[i] = float32(rng.NormFloat64())
	}
	a, err := p.Upload(wire.Request{Kind: wire.KindUpload, Shape: []int{heads, rows, dim}, Axes: []string{"heads", "seq", "dim"}}, data)
	if err != nil {
		return 0, err
	}
	return a.Tensors[0].ID, nil
}

func (p *process) op(op wire.Op, params wire.Params, in ...int) (int, error) {
	a, err := p.Do(wire.Request{Kind: wire.KindRun, Op: op, Params: params, IDs: in})
	if err != nil {
		return 0, err
	}
	return a.Tensors[0].ID, nil
}

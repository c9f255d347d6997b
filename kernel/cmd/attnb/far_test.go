package main

import (
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/attnb/attnb/cudaops/devices"
	"github.com/attnb/attnb/kernel/far"
	"github.com/attnb/attnb/kernel/spec"
	"github.com/attnb/attnb/kernel/wire"
)

func random(seed uint64, n int) []float32 {
	rng := rand.New(rand.NewPCG(seed, 1))
	values := make([]float32, n)
	for i := range values {
		values[i] = float32(rng.NormFloat64())
	}
	return values
}

// awkward are values whose bits a conversion would not keep.
var awkward = []float32{0, float32(math.Copysign(0, -1)), float32(math.Inf(1)), math.Float32frombits(0x7fc01234), math.SmallestNonzeroFloat32, 1}

func TestFarDoesWhatADeviceProcessDoes(t *testing.T) {
	r := startRelay(startSSHD(t), nil)
	c := r.dial()
	big := random(1, 1_000_003)
	x, y := named(t, c, "x", big), put(t, c, awkward)
	has(t, c, x.ID, big)
	has(t, c, y.ID, awkward)
	other := r.dial()
	a, err := other.Do(wire.Request{Kind: wire.KindGet, Name: "x"})
	if err != nil || len(a.Tensors) != 1 || a.Tensors[0].ID != x.ID {
		t.Errorf("another client gets %+v, %v", a, err)
	}
	// What only a client held goes with it.
	if s, err := status(other); err != nil || s.Tensors != 2 || !strings.Contains(s.Device, ", on 127.0.0.1 through ssh, ") || s.PID == os.Getpid() {
		t.Errorf("status %+v, %v", s, err)
	}
	c.Close()
	eventually(t, "what a client held is freed", func() bool {
		s, err := status(other)
		return err == nil && s.Tensors == 1
	})
	if _, err := other.Do(wire.Request{Kind: wire.KindGet, Name: "z"}); err == nil || !strings.Contains(err.Error(), `"z"`) {
		t.Errorf("a refusal: %v", err)
	}
	if _, err := wire.DialAs(r.socket, "another"); err == nil || !strings.Contains(err.Error(), "another kernel") {
		t.Errorf("a wrong token: %v", err)
	}
}

// The files that cells name are those of this machine: their values go over the link, of the one array that was asked for.
func TestFarReadsFilesHere(t *testing.T) {
	r := startRelay(startSSHD(t), nil)
	c := r.dial()
	repo, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(repo, "notebooks", "data", "neox_layer.npz")
	if err := c.Cell(7); err != nil {
		t.Fatal(err)
	}
	a, err := c.Do(wire.Request{Kind: wire.KindLoad, Path: data, Member: "qkv"})
	if err != nil {
		t.Fatal(err)
	}
	x := a.Tensors[0]
	if x.Made == "" || x.Cell != 7 || len(x.Shape) != 2 || strings.Join(x.Axes, " ") != "seq hidden" {
		t.Errorf("%+v", x)
	}
	if got, err := c.Download(wire.Request{Kind: wire.KindDownload, IDs: []int{x.ID}}); err != nil || len(got) != x.Shape[0]*x.Shape[1] {
		t.Errorf("%d values, %v", len(got), err)
	}
	for _, bad := range []struct {
		r    wire.Request
		want string
	}{
		{wire.Request{Kind: wire.KindLoad, Path: data, Member: "no"}, `no array "no"`},
		{wire.Request{Kind: wire.KindLoad, Path: "/no/such/file.npy"}, "Load: /no/such/file.npy: no such file"},
		{wire.Request{Kind: wire.KindModel, Path: filepath.Dir(data)}, "OpenModel: "},
	} {
		var refused *wire.Error
		if _, err := c.Do(bad.r); !errors.As(err, &refused) || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%v, want %q", err, bad.want)
		}
	}
	a, err = c.Do(wire.Request{Kind: wire.KindModel, Path: filepath.Join(repo, "notebooks", "models", "induction")})
	if err != nil || a.Model == nil || len(a.Model.Layers) == 0 {
		t.Fatalf("a model: %+v, %v", a, err)
	}
	name := a.Model.Layers[0].QKV.Weight + a.Model.Layers[0].Q.Weight
	if _, err := c.Do(wire.Request{Kind: wire.KindLoad, Path: a.Model.Weights, Member: name}); err != nil {
		t.Errorf("its weight %s: %v", name, err)
	}
}

// A link that is lost costs what was under way, and no tensor: not even one without a name, whose cell goes on.
func TestFarLinkLost(t *testing.T) {
	r := startRelay(startSSHD(t), nil)
	c, busy := r.dial(), r.dial()
	big := random(2, 300_001)
	x, y := named(t, c, "x", big), put(t, c, awkward)

	// Nothing under way: the next op does not notice.
	r.kill(syscall.SIGKILL)
	began := time.Now()
	has(t, c, y.ID, awkward)
	t.Logf("over the next link after %v", time.Since(began).Round(time.Millisecond))
	has(t, c, x.ID, big)

	// An op under way fails, and says what is kept and for how long.
	failed := make(chan error, 1)
	go func() { failed <- slow(busy) }()
	var err error
	for ended := false; !ended; {
		eventually(t, "an op runs", func() bool {
			s, err := status(c)
			return err == nil && s.Running != ""
		})
		r.kill(syscall.SIGKILL)
		select {
		case err = <-failed:
			ended = true
		case <-time.After(5 * time.Second): // it fell between two ops, and the second was sent again
		}
	}
	var refused *wire.Error
	if !errors.As(err, &refused) || refused.Code != wire.LinkLost || !strings.Contains(err.Error(), "the link to 127.0.0.1 was lost: ") ||
		!strings.Contains(err.Error(), "Tensors are kept there until ") || !strings.Contains(err.Error(), "(ATTNB_GRACE=1m0s): run the cell again") {
		t.Errorf("an op under way: %v", err)
	}
	has(t, c, y.ID, awkward)
	has(t, c, x.ID, big)
	eventually(t, "the device is idle: what was under way has ended", func() bool {
		s, err := status(c)
		return err == nil && s.Running == ""
	})
	eventually(t, "the client of that op holds nothing of it", func() bool {
		s, err := status(busy)
		return err == nil && s.Tensors == 2
	})

	// A client that goes while there is no link is not kept.
	gone := r.dial()
	put(t, gone, awkward)
	r.kill(syscall.SIGKILL)
	gone.Close()
	eventually(t, "what it held is freed", func() bool {
		s, err := status(c)
		return err == nil && s.Tensors == 2
	})
}

// slow is a request that takes long: a check of a softmax that is replayed in float64.
func slow(c *wire.Conn) error {
	const n = 1500
	a, err := c.Upload(wire.Request{Kind: wire.KindUpload, Shape: []int{4, n, 64}, Axes: []string{"heads", "seq", "dim"}}, random(3, 4*n*64))
	if err != nil {
		return err
	}
	id := a.Tensors[0].ID
	if a, err = c.Do(wire.Request{Kind: wire.KindRun, Op: wire.OpPrefill, IDs: []int{id, id, id}, Params: wire.Params{Scale: 0.125, Mask: wire.MaskCausal}}); err != nil {
		return err
	}
	for {
		if _, err = c.Do(wire.Request{Kind: wire.KindCheck, IDs: []int{a.Tensors[0].ID}}); err != nil {
			return err
		}
	}
}

// A link that carries nothing any more is found out, and replaced.
func TestFarLinkThatHangs(t *testing.T) {
	r := startRelay(startSSHD(t), func(o *far.Options) { o.Patience = 2 * time.Second })
	c := r.dial()
	x := put(t, c, awkward)
	stopped := r.sshPID()
	r.kill(syscall.SIGSTOP)
	began := time.Now()
	has(t, c, x.ID, awkward) // it never came there, and is asked for again
	t.Logf("found out after %v", time.Since(began).Round(time.Millisecond))
	if syscall.Kill(stopped, 0) == nil {
		t.Error("the ssh that hangs still runs")
	}
	r.kill(syscall.SIGSTOP)
	_, err := c.Upload(wire.Request{Kind: wire.KindUpload, Shape: []int{1 << 20}, Axes: []string{"dim"}}, make([]float32, 1<<20))
	if err == nil || !strings.Contains(err.Error(), "FromSlice: the link to 127.0.0.1 was lost: 127.0.0.1 does not answer. Tensors are kept") {
		t.Errorf("an upload over a link that hangs: %v", err)
	}
	if _, err := status(c); err != nil {
		t.Error(err)
	}
}

// A link that is slow is not taken for one that hangs, however much waits to go over it.
func TestFarSlowLink(t *testing.T) {
	s := startSSHD(t)
	r := startRelay(s, func(o *far.Options) {
		o.Patience, o.SSH = 3*time.Second, []string{os.Args[0], slowSSH, "-F", s.config}
	})
	c, other := r.dial(), r.dial()
	values := random(5, 400_000)
	began := time.Now()
	x := put(t, c, values)
	took := time.Since(began)
	if took < 3*time.Second {
		t.Errorf("%d bytes took %v: the link is not slow", 4*len(values), took)
	}
	done := make(chan error, 1)
	go func() {
		_, err := status(other)
		done <- err
	}()
	has(t, c, x.ID, values)
	if err := <-done; err != nil {
		t.Error(err)
	}
	t.Logf("1.6 MB in %v, over a link that takes 0.4 MB a second", took.Round(time.Millisecond))
}

// The relay killed: another one finds the tensors that have a name.
func TestFarRelayKilled(t *testing.T) {
	s := startSSHD(t)
	dir, err := os.MkdirTemp("", "attnb-r-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	token := "token-of-" + filepath.Base(dir)
	cmd := attnb("device", "--socket", filepath.Join(dir, "s"))
	cmd.Env = append(append(os.Environ(), s.environ()...), wire.EnvNonce+"="+token)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var c *wire.Conn
	eventually(t, "the relay serves", func() bool {
		c, err = wire.DialAs(filepath.Join(dir, "s"), token)
		return err == nil
	})
	named(t, c, "x", awkward)
	put(t, c, awkward)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	c.Close()
	r := startRelay(s, func(o *far.Options) { o.Token = token })
	c = r.dial()
	a, err := c.Do(wire.Request{Kind: wire.KindGet, Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	has(t, c, a.Tensors[0].ID, awkward)
	eventually(t, "what only the first relay's clients held is freed", func() bool {
		s, err := status(c)
		return err == nil && s.Tensors == 1
	})
}

// The grace time over, the device process ends by itself, and the relay says so.
func TestFarGrace(t *testing.T) {
	s := startSSHD(t)
	r := startRelay(s, func(o *far.Options) { o.Grace = time.Second })
	c := r.dial()
	named(t, c, "x", awkward)
	// No new link: the configuration is gone.
	hidden := s.config + ".away"
	if err := os.Rename(s.config, hidden); err != nil {
		t.Fatal(err)
	}
	r.kill(syscall.SIGKILL)
	_, err := c.Do(wire.Request{Kind: wire.KindList})
	if err == nil || !strings.Contains(err.Error(), "no link to 127.0.0.1: ") || !strings.Contains(err.Error(), "ensors") {
		t.Errorf("no link: %v", err)
	}
	r.gone()
	if err := os.Rename(hidden, s.config); err != nil {
		t.Fatal(err)
	}
	_, err = c.Do(wire.Request{Kind: wire.KindList})
	var refused *wire.Error
	if !errors.As(err, &refused) || refused.Code != wire.DeviceFault || !strings.Contains(err.Error(), "every tensor is lost. A fresh one starts") {
		t.Errorf("after the grace time: %v", err)
	}
	err = <-r.ended
	r.ended <- nil
	var gone *far.GoneError
	if !errors.As(err, &gone) || gone.Host != "127.0.0.1" {
		t.Errorf("the relay ended with %v", err)
	}
}

// The device process there killed: the relay ends, and the next one knows which names were lost.
func TestFarDeviceProcessKilled(t *testing.T) {
	s := startSSHD(t)
	r := startRelay(s, nil)
	c := r.dial()
	named(t, c, "x", awkward)
	status, err := status(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(status.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	err = <-r.ended
	r.ended <- nil
	var gone *far.GoneError
	if !errors.As(err, &gone) {
		t.Errorf("the relay ended with %v", err)
	}
	again := startRelay(s, func(o *far.Options) { o.Token = r.token })
	if _, err := again.dial().Do(wire.Request{Kind: wire.KindGet, Name: "x"}); err == nil || !strings.Contains(err.Error(), "lost when the device process ended") {
		t.Errorf("a name that was lost: %v", err)
	}
}

// The doctor goes all the way, and says what is there.
func TestDoctorOfAnotherMachine(t *testing.T) {
	s := startSSHD(t)
	for _, v := range s.environ() {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, value)
	}
	t.Setenv(wire.EnvNonce, "")
	here := spec.Home{Root: t.TempDir()}
	expect(t, find(t, examineDevice(t.Context(), here), devices.Variable), spec.Good, s.url())
	expect(t, examineProcess(t.Context(), os.Args[0]), spec.Good, ", on 127.0.0.1 through ssh, ")
	t.Setenv(far.PathVariable, "/no/such/attnb")
	expect(t, examineProcess(t.Context(), os.Args[0]), spec.Faulty, "no attnb on 127.0.0.1")
	t.Setenv(devices.Variable, "ssh://a b")
	expect(t, find(t, examineTarget(), devices.Variable), spec.Faulty, "no name of a host")
}

// A shell's profile that prints is not taken for attnb.
func TestFarNoise(t *testing.T) {
	s := startSSHD(t)
	path := filepath.Join(s.dir, "noisy")
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho Welcome to this machine\nprintf 'a line without end\\r\\n'\nexec "+os.Args[0]+" \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	r := startRelay(s, func(o *far.Options) { o.Path = path })
	c := r.dial()
	has(t, c, put(t, c, awkward).ID, awkward)
}

package resident

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/attnb/attnb/kernel/wire"
)

// raw connects without the client's manners.
func (p *process) raw() net.Conn {
	p.t.Helper()
	c, err := net.Dial("unix", p.socket)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		p.t.Fatal(err)
	}
	return c
}

func frame(body []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(body))), body...)
}

func hello(version int) []byte {
	return frame((&wire.Request{Kind: wire.KindHello, Number: version, Name: token}).Encode())
}

// Whatever a client sends, it gets an error or is cut off; the process and its tensors stay.
func TestHostileClients(t *testing.T) {
	p := onHost(t)
	keep := p.dial()
	defer keep.Close()
	kept := keep.random(1, fused, 2, 3)
	request := func(r wire.Request) []byte { return append(hello(wire.Version), frame(r.Encode())...) }
	for _, c := range []struct {
		name string
		send []byte
		want string // message of the last answer; "" where the connection just ends
	}{
		{"another version", hello(wire.Version + 1), "the device process speaks version 1, this program version 2: restart the kernel"},
		{"another kernel's token", append(frame((&wire.Request{Kind: wire.KindHello, Number: wire.Version, Name: token[1:]}).Encode()),
			frame((&wire.Request{Kind: wire.KindList}).Encode())...), "the device process is of another kernel: this program does not know its token"},
		{"no hello", frame((&wire.Request{Kind: wire.KindList}).Encode()), "the first message must be hello"},
		{"garbage", frame([]byte("GET / HTTP/1.1\r\n")), "malformed request"},
		{"a frame of 4 GB", []byte{0xff, 0xff, 0xff, 0xff, 1, 2, 3}, ""},
		{"half a frame", []byte{100, 0, 0, 0, 1}, ""},
		{"unknown request", request(wire.Request{Kind: 200}), "unknown request 200"},
		{"unknown op", request(wire.Request{Kind: wire.KindRun, Op: 200}), "unknown op 200"},
		{"no inputs", request(wire.Request{Kind: wire.KindRun, Op: wire.OpAdd}), "Add: 0 tensors, it takes 2"},
		{"too many inputs", request(wire.Request{Kind: wire.KindRun, Op: wire.OpMerge, IDs: []int{1, 1}}), "Merge: 2 tensors, it takes 1"},
		{"not its tensor", request(wire.Request{Kind: wire.KindDownload, IDs: []int{-1}}), "Download: not a tensor: it was declared but never made"},
		{"upload that promises too much", request(wire.Request{Kind: wire.KindUpload, Shape: []int{1 << 20, 1 << 20}, Axes: fused, DataLen: 1 << 42}),
			""}, // refused at once, then the rest of the promise is awaited
		{"negative data", request(wire.Request{Kind: wire.KindUpload, Shape: []int{1}, Axes: []string{"dim"}, DataLen: -4}),
			"FromSlice: -1 values for [dim 1], which has 1"},
		{"a name of nothing", request(wire.Request{Kind: wire.KindName, IDs: []int{1}}), `Named: a name has 1 to 256 bytes, "" has 0`},
		{"a relative path", request(wire.Request{Kind: wire.KindLoad, Path: "x.npy"}), "Load: x.npy: the path is not absolute"},
		{"a device", request(wire.Request{Kind: wire.KindLoad, Path: "/dev/zero"}), "Load: /dev/zero: not a regular file"},
		{"no display", request(wire.Request{Kind: wire.KindDisplay, Name: "d99"}), `no display "d99"`},
		{"nothing to show", request(wire.Request{Kind: wire.KindShow}), "Show: nothing to show"},
	} {
		t.Run(c.name, func(t *testing.T) {
			nc := p.raw()
			defer nc.Close()
			if _, err := nc.Write(c.send); err != nil {
				t.Fatal(err)
			}
			if err := nc.(*net.UnixConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			var last wire.Answer
			for {
				body, err := wire.ReadFrame(nc)
				if err != nil {
					if !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) { // reset: it did not read all
						t.Errorf("the connection ends with %v", err)
					}
					break
				}
				if last, err = wire.DecodeAnswer(body); err != nil {
					t.Fatal(err)
				}
			}
			if last.Message != c.want {
				t.Errorf("%q, want %q", last.Message, c.want)
			}
			if got := keep.download(kept); len(got) != 6 {
				t.Errorf("the other client's tensor has %d values", len(got))
			}
		})
	}
	p.settle(24)
}

// A client that dies in the middle of an upload leaves nothing.
func TestUploadCutOff(t *testing.T) {
	p := onHost(t)
	nc := p.raw()
	r := wire.Request{Kind: wire.KindUpload, Shape: []int{1 << 20}, Axes: []string{"dim"}, DataLen: 4 << 20}
	if _, err := nc.Write(append(append(hello(wire.Version), frame(r.Encode())...), make([]byte, 1<<20)...)); err != nil {
		t.Fatal(err)
	}
	nc.Close()
	c := p.dial()
	defer c.Close()
	c.random(1, fused, 2, 3)
	p.settle(24)
}

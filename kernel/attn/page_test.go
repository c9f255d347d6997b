package attn_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/kernel/attn"
	"github.com/attnb/attnb/kernel/resident"
	"github.com/attnb/attnb/kernel/wire"
)

// onPage runs the examples as cells of one kernel: with a device process, in the environment of a cell, in the folder of the notebooks.
// What they show is put in words, which go test compares with what stands below an example. dir is for sockets.
func onPage(dir string, run func() int) int {
	backend, err := openBackend()
	check(err)
	d := cudaops.NewDevice(backend)
	socket, controls := filepath.Join(dir, "device"), filepath.Join(dir, "controls")
	for name, value := range map[string]string{wire.EnvSocket: socket, wire.EnvControls: controls, wire.EnvNonce: nonce} {
		check(os.Setenv(name, value))
	}
	check(os.Chdir("../../notebooks"))

	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- resident.Serve(ctx, resident.Options{Socket: socket, Device: d, Token: nonce}) }()
	l, err := net.Listen("unix", controls)
	check(err)
	go turnControls(l)
	proxy := dial(socket)
	firstCell()
	attn.Publish(func(report, displayID string) { publish(proxy, report, displayID) })

	code := run()
	l.Close()
	proxy.Close()
	cancel()
	check(<-served)
	d.Close()
	return code
}

// firstCell runs the cell before all others, which shows nothing here.
func firstCell() {
	nowhere, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	check(err)
	defer nowhere.Close()
	stdout := os.Stdout
	os.Stdout = nowhere
	Example()
	os.Stdout = stdout
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func dial(socket string) *wire.Conn {
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		conn, err := wire.Dial(socket)
		if err == nil {
			return conn
		}
		if time.Now().After(deadline) {
			panic(err)
		}
	}
}

// publish prints the head of a report, or else the first of a picture's words, a line a sentence, and the controls beside it.
func publish(proxy *wire.Conn, report, displayID string) {
	var words string
	var controls []wire.Control
	if displayID != "" {
		d, err := proxy.Display(displayID)
		check(err)
		for _, p := range d.Parts {
			if p.MIME == "text/plain" {
				words = string(p.Data)
			}
		}
		if words == "" {
			panic("a picture without words")
		}
		if d.Exploration != nil {
			controls = d.Exploration.Controls
		}
	}
	if report != "" {
		words, _, _ = strings.Cut(report, "\n")
		words = ofRounding.ReplaceAllString(words, "")
	}
	words = digits.ReplaceAllStringFunc(words, func(s string) string {
		x, err := strconv.ParseFloat(s, 64)
		check(err)
		return fmt.Sprintf("%.3g", x)
	})
	sentences := strings.Split(strings.ReplaceAll(words, ". ", ".\n"), "\n")
	fmt.Println(strings.Join(sentences[:min(5, len(sentences))], "\n"))
	for _, c := range controls {
		if len(c.Options) > 0 {
			fmt.Printf("[%s: %s]\n", c.Label, strings.Join(c.Options, ", "))
		} else {
			fmt.Printf("[%s: %.3g to %.3g]\n", c.Label, c.From, c.To)
		}
	}
}

var (
	digits     = regexp.MustCompile(`\d+\.\d{4,}(e-?\d+)?`)
	ofRounding = regexp.MustCompile(`;.*|, (error|relative|off by).*`) // differs from one CPU to the next
)

// turnControls has a page where somebody drags each control to its end, and then closes it.
func turnControls(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			var ends []float64 // to which the control will be turned
			for {
				frame, err := wire.ReadFrame(conn)
				if err != nil {
					return
				}
				r, err := wire.DecodeRequest(frame)
				check(err)
				var a wire.Answer
				switch r.Kind {
				case wire.KindHello:
					a.Number = wire.Version
				case wire.KindOpenControl:
					c := r.Controls[0]
					a.Text, ends = "model", []float64{max(c.To, float64(len(c.Options)-1))}
				case wire.KindTurned:
					if len(ends) > 0 {
						a.Control, ends = &wire.Control{Value: ends[0]}, nil
					}
				}
				check(wire.WriteFrame(conn, a.Encode()))
			}
		}()
	}
}

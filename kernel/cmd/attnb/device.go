package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/devices"
	"github.com/attnb/attnb/kernel/far"
	"github.com/attnb/attnb/kernel/proxy/runtimedir"
	"github.com/attnb/attnb/kernel/resident"
	"github.com/attnb/attnb/kernel/wire"
)

// deviceCommand is `attnb device --socket PATH [--runtime DIR]`. With --runtime, file 3 is the lifeline: when it closes,
// the kernel is gone, and this process ends all that the kernel had started and removes its directory. ATTNB_DEVICE chooses the
// device and ATTNB_MEMORY bounds what its arrays take. It ends with status 75 when the device failed: another process may start. Where ATTNB_DEVICE is
// ssh://HOST, this process is a relay to that machine, and ends with status 76 when the tensors there are gone.
func deviceCommand(args []string) int {
	flags := flag.NewFlagSet("device", flag.ContinueOnError)
	socket := flags.String("socket", "", "serve at this unix socket")
	runtime := flags.String("runtime", "", "clean up this runtime directory of a kernel when file 3 closes")
	selfTest := flags.Bool("self-test", false, "try every op against float64, and end")
	if err := flags.Parse(args); err != nil || (*socket == "") != *selfTest || flags.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "usage: attnb device --socket PATH [--runtime DIR] | --self-test")
		return 2
	}
	if *selfTest {
		return deviceSelfTest(os.Stdout, os.Stderr)
	}
	log := deviceLog()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	signal.Ignore(syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE)

	var lifeline *os.File
	if *runtime != "" {
		syscall.CloseOnExec(3)
		if err := syscall.SetNonblock(3, true); err != nil {
			fmt.Fprintln(os.Stderr, "attnb device: --runtime needs a pipe as file 3:", err)
			return 2
		}
		lifeline = os.NewFile(3, "lifeline")
	}
	var err error
	if far.IsTarget(os.Getenv(devices.Variable)) {
		err = serveRelay(ctx, *socket, lifeline, log)
	} else {
		err = serveDevice(ctx, *socket, *runtime, lifeline, log)
	}
	var fault *resident.FaultError
	var gone *far.GoneError
	switch {
	case errors.As(err, &fault):
		return resident.ExitFault
	case errors.As(err, &gone):
		return far.ExitGone
	}
	if *runtime != "" && ctx.Err() == nil && orphaned(lifeline) {
		if err := runtimedir.Clean(*runtime); err != nil {
			log.Error("runtime directory", "error", err)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "attnb device:", err)
		return 1
	}
	return 0
}

// serveDevice serves tensors on this machine.
func serveDevice(ctx context.Context, socket, runtime string, lifeline *os.File, log *slog.Logger) error {
	device, err := openDevice(log)
	if err != nil {
		return err
	}
	options := resident.Options{Socket: socket, Token: os.Getenv(wire.EnvNonce), Device: device, Lifeline: lifeline, Log: log}
	if runtime != "" {
		options.Record = filepath.Join(runtime, "names.json")
	}
	err = resident.Serve(ctx, options)
	var fault *resident.FaultError
	if !errors.As(err, &fault) {
		device.Close() // one that failed is not closed: that may wait for ever
	}
	return err
}

func deviceLog() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// openDevice opens the device that the environment chooses.
func openDevice(log *slog.Logger) (*cudaops.Device, error) {
	memory, err := devices.ParseMemory(os.Getenv(devices.MemoryVariable))
	if err != nil {
		return nil, err
	}
	backend, note, err := devices.Open(os.Getenv(devices.Variable), memory)
	if err != nil {
		return nil, err
	}
	if note != "" {
		log.Info("no GPU", "reason", note)
	}
	return cudaops.NewDevice(backend), nil
}

// orphaned reports whether the lifeline's other end has closed.
func orphaned(lifeline *os.File) bool {
	if err := lifeline.SetReadDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
		return false
	}
	n, err := lifeline.Read(make([]byte, 1))
	return n == 0 && errors.Is(err, io.EOF)
}

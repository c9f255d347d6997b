package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/attnb/attnb/cudaops/devices"
	"github.com/attnb/attnb/kernel/far"
	"github.com/attnb/attnb/kernel/proxy/runtimedir"
	"github.com/attnb/attnb/kernel/resident"
	"github.com/attnb/attnb/kernel/wire"
)

// farCommand is `attnb far attach`, which the ssh of a kernel on another machine runs, and `attnb far serve DIR`, which that starts: the device process.
func farCommand(args []string) int {
	switch {
	case len(args) == 1 && args[0] == "attach":
		signal.Ignore(syscall.SIGINT)
		return far.Attach(os.Stdin, os.Stdout, far.Attachment{Version: version, Socket: farSocket, Start: startFar})
	case len(args) == 2 && args[0] == "serve":
		return serveFar(args[1])
	}
	fmt.Fprintln(os.Stderr, "usage: attnb far attach | serve DIR\nA kernel on another machine, whose ATTNB_DEVICE is ssh://THIS-MACHINE, calls it.")
	return 2
}

const (
	linkSocket   = "link"
	deviceSocket = "device"
)

// farSocket is where the device process of the kernel with a token takes links.
func farSocket(token string) (string, error) {
	if token == "" {
		return "", errors.New("no token")
	}
	sum := sha256.Sum256([]byte(token))
	dir, err := runtimedir.Named(hex.EncodeToString(sum[:8]))
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, linkSocket), nil
}

// startFar starts the device process, which is to outlive this one and its session.
func startFar(h far.Hello, said *os.File) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	socket, err := farSocket(h.Token)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, "far", "serve", filepath.Dir(socket))
	cmd.Dir = "/"
	cmd.Env = os.Environ()
	for name, value := range map[string]string{wire.EnvNonce: h.Token, far.GraceVariable: h.Grace.String(), devices.Variable: h.Device, devices.MemoryVariable: h.Memory} {
		if value != "" { // else what this machine has
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	cmd.Stderr = said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd, cmd.Start()
}

// serveFar is the device process of a kernel on another machine. It ends with its kernel, or when no link has come for the grace time, and leaves nothing.
func serveFar(path string) int {
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, "attnb far:", err)
		return 1
	}
	dir, err := runtimedir.Hold(path)
	if errors.Is(err, runtimedir.ErrHeld) {
		return far.ExitHeld
	}
	if err != nil {
		return fail(err)
	}
	grace, err := far.ParseGrace(os.Getenv(far.GraceVariable))
	if err != nil {
		return fail(errors.Join(err, dir.Remove()))
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	signal.Ignore(syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE)
	log := deviceLog()
	device, err := openDevice(log)
	if err != nil {
		return fail(errors.Join(err, dir.Remove()))
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	token := os.Getenv(wire.EnvNonce)
	var keeping sync.WaitGroup
	var kept error
	keeping.Go(func() {
		defer end() // the grace time is over
		kept = far.Keep(ctx, far.Keeping{Socket: dir.File(linkSocket), Device: dir.File(deviceSocket), Token: token, Version: version, Grace: grace, Log: log})
	})
	err = resident.Serve(ctx, resident.Options{Socket: dir.File(deviceSocket), Token: token, Device: device, Record: dir.File("names.json"), Log: log})
	end()
	keeping.Wait()
	var fault *resident.FaultError
	if errors.As(err, &fault) {
		return resident.ExitFault // the directory stays: the next one finds there which names were lost
	}
	device.Close()
	if err := errors.Join(err, kept, dir.Remove()); err != nil {
		return fail(err)
	}
	return 0
}

// serveRelay is `attnb device` where ATTNB_DEVICE names another machine.
func serveRelay(ctx context.Context, socket string, lifeline *os.File, log *slog.Logger) error {
	target, err := far.ParseTarget(os.Getenv(devices.Variable))
	if err != nil {
		return err
	}
	grace, err := far.ParseGrace(os.Getenv(far.GraceVariable))
	if err != nil {
		return err
	}
	memory := os.Getenv(devices.MemoryVariable)
	if _, err := devices.ParseMemory(memory); err != nil {
		return err
	}
	return far.Relay(ctx, far.Options{Socket: socket, Token: os.Getenv(wire.EnvNonce), Version: version, Target: target, SSH: strings.Fields(os.Getenv(far.SSHVariable)),
		Path: os.Getenv(far.PathVariable), Grace: grace, Memory: memory, Lifeline: lifeline, Log: log})
}

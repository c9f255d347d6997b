package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/attnb/attnb/kernel/proxy"
	"github.com/attnb/attnb/kernel/proxy/jupyter"
	"github.com/attnb/attnb/kernel/spec"
)

// kernelCommand is `attnb kernel CONNECTION_FILE`.
func kernelCommand(args []string) int {
	if len(args) != 1 {
		fmt.Fprintln(os.Stderr, "usage: attnb kernel CONNECTION_FILE")
		return 2
	}
	if err := serve(args[0]); err != nil {
		fmt.Fprintln(os.Stderr, "attnb:", err)
		return 1
	}
	return 0
}

func serve(file string) error {
	home, err := spec.FindHome()
	if err != nil {
		return err
	}
	connection, err := jupyter.ReadConnection(file)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	return proxy.Run(ctx, proxy.Options{
		Connection: connection,
		Version:    version,
		ID:         kernelID(file),
		Gonb:       home.Gonb(),
		Path:       []string{home.PathDir(), home.Bin()},
		Device:     []string{home.Attnb(), "device"},
		Interrupts: interrupts,
		Log:        slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
}

// kernelID is the kernel's id in Jupyter's URLs, which is in the name of its connection file: kernel-ID.json.
func kernelID(file string) string {
	name, ok := strings.CutSuffix(filepath.Base(file), ".json")
	id, ok2 := strings.CutPrefix(name, "kernel-")
	if !ok || !ok2 || strings.Trim(id, "0123456789abcdef-") != "" {
		return ""
	}
	return id
}

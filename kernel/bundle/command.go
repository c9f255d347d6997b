package bundle

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/attnb/attnb/kernel/spec"
)

// Command is `attnb bundle`, of an installation. It returns the exit status: 0, 1 for failure, 2 for arguments that do not fit.
func Command(args []string, version string, out, errs io.Writer) int {
	flags := flag.NewFlagSet("bundle", flag.ContinueOnError)
	flags.SetOutput(errs)
	o := Options{Version: version, Out: out}
	flags.StringVar(&o.File, "o", "attnb-bundle-linux-amd64.tar.xz", "the archive to write; one that ends in .tar is not compressed")
	clone := flags.String("clone", ".", "a clone of attnb, for its notebooks and requirements.txt: `DIR`")
	flags.StringVar(&o.Python, "python", "python3", "a Python with pip, to fetch and to compress with")
	versions := flags.String("for", "3.10,3.11,3.12,3.13,3.14", "the versions of Python to serve")
	flags.BoolVar(&o.Gopls, "gopls", false, "bring along gopls, for completion and inspection (8 MB)")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	case flags.NArg() > 0:
		fmt.Fprintf(errs, "attnb bundle: unexpected %q\n", flags.Arg(0))
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o.Versions = strings.Split(*versions, ",")
	o.Notebooks, o.Requirements = filepath.Join(*clone, "notebooks"), filepath.Join(*clone, "requirements.txt")
	if err := find(ctx, &o); err != nil {
		fmt.Fprintln(errs, "attnb bundle:", err)
		return 1
	}
	fmt.Fprintf(out, "packing %s\n", o.Home.Root)
	if err := Make(ctx, o); err != nil {
		fmt.Fprintln(errs, "attnb", err)
		return 1
	}
	return 0
}

// find finds the installation and its Go.
func find(ctx context.Context, o *Options) (err error) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return fmt.Errorf("bundles are made on Linux with x86-64, for the same: this is %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	if o.Home, err = spec.FindHome(); err != nil {
		return err
	}
	if o.GoRoot = o.Home.GoRoot(); o.GoRoot != "" {
		return nil
	}
	found, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("no Go toolchain to bring along: %w", err)
	}
	o.GoRoot = strings.TrimSpace(string(found))
	return nil
}

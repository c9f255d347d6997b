package spec

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// The commands take the arguments after their name, say what they do on out, and return the exit status: 0, 1 for
// failure, 2 for arguments that do not fit.

// InstallCommand is `attnb install`.
func InstallCommand(args []string, out, errs io.Writer) int {
	flags := newFlags("install", "install --user | --sys-prefix | --prefix DIR [--toolchain DIR]", errs)
	var where choice
	where.register(flags)
	toolchain := flags.String("toolchain", "", "bring along the Go toolchain at `DIR`, for a machine that has none")
	place, code := parse(flags, &where, args, errs)
	if code != 0 {
		return code - 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	fmt.Fprintf(out, "installing attnb in %s\n", place.Home.Root)
	if err := Install(ctx, Options{Place: place, Toolchain: *toolchain, Out: out}); err != nil {
		fmt.Fprintln(errs, err)
		return 1
	}
	fmt.Fprintf(out, "installed: Jupyter shows it as \"Go (attnb)\"\n")
	return 0
}

// UninstallCommand is `attnb uninstall`.
func UninstallCommand(args []string, out, errs io.Writer) int {
	flags := newFlags("uninstall", "uninstall --user | --sys-prefix | --prefix DIR", errs)
	var where choice
	where.register(flags)
	place, code := parse(flags, &where, args, errs)
	if code != 0 {
		return code - 1
	}
	if err := Uninstall(place, out); err != nil {
		fmt.Fprintln(errs, err)
		return 1
	}
	return 0
}

// parse returns the chosen place, or one more than the exit status to end with.
func parse(flags *flag.FlagSet, where *choice, args []string, errs io.Writer) (Place, int) {
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return Place{}, 1
	case err != nil:
		return Place{}, 3
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(errs, "attnb %s: unexpected %q\n", flags.Name(), flags.Arg(0))
		return Place{}, 3
	}
	place, err := where.place()
	switch {
	case errors.Is(err, errOnePlace):
		fmt.Fprintf(errs, "attnb %s: %v\n", flags.Name(), err)
		flags.Usage()
		return Place{}, 3
	case err != nil:
		fmt.Fprintln(errs, err)
		return Place{}, 2
	}
	return place, 0
}

// DoctorCommand is `attnb doctor`. extra are examinations that the caller makes, of the device for example.
func DoctorCommand(args []string, out, errs io.Writer, extra ...func(context.Context, Home) []Finding) int {
	flags := newFlags("doctor", "doctor", errs)
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	home, err := FindHome()
	if err != nil {
		fmt.Fprintln(errs, err)
		return 1
	}
	findings := Examine(ctx, home)
	for _, examine := range extra {
		findings = append(findings, examine(ctx, home)...)
	}
	if !Print(out, findings) {
		return 1
	}
	return 0
}

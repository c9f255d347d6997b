// Command attnb is the attention notebook: the kernel that Jupyter starts, the device process beside it, and what
// installs them.
package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/attnb/attnb/kernel/bundle"
	"github.com/attnb/attnb/kernel/spec"
)

// version is set by the linker.
var version = "0.1.0-dev"

type command struct {
	name, args, does string
	run              func(args []string) int
}

func commands() []command {
	return []command{
		{"kernel", "CONNECTION_FILE", "serve a notebook: Jupyter calls this", kernelCommand},
		{"device", "--socket PATH | --self-test", "serve tensors: the kernel calls this; or try every op", deviceCommand},
		{"far", "attach | serve DIR", "the same for a kernel elsewhere: its ssh calls this", farCommand},
		{"install", "--user | --sys-prefix | --prefix DIR", "install the kernel for Jupyter", func(args []string) int {
			return spec.InstallCommand(args, os.Stdout, os.Stderr)
		}},
		{"uninstall", "--user | --sys-prefix | --prefix DIR", "remove it", func(args []string) int {
			return spec.UninstallCommand(args, os.Stdout, os.Stderr)
		}},
		{"doctor", "", "say what is there, what is missing, and what that costs", func(args []string) int {
			return spec.DoctorCommand(args, os.Stdout, os.Stderr, examineDevice)
		}},
		{"bundle", "[-o FILE]", "pack it all for a machine with neither network nor Go", func(args []string) int {
			return bundle.Command(args, version, os.Stdout, os.Stderr)
		}},
		{"version", "", "print the version", func([]string) int {
			fmt.Println("attnb", version)
			return 0
		}},
	}
}

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	if len(args) == 0 {
		usage(os.Stderr)
		return 2
	}
	name := strings.TrimLeft(args[0], "-")
	if name == "help" || name == "h" {
		usage(os.Stdout)
		return 0
	}
	for _, c := range commands() {
		if c.name == name {
			return c.run(args[1:])
		}
	}
	fmt.Fprintf(os.Stderr, "attnb: unknown command %q\n", args[0])
	usage(os.Stderr)
	return 2
}

func usage(w io.Writer) {
	fmt.Fprintln(w, "usage: attnb COMMAND")
	for _, c := range commands() {
		fmt.Fprintf(w, "  %-52s %s\n", strings.TrimSpace(c.name+" "+c.args), c.does)
	}
}

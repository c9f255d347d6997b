package main

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attnb/attnb/cudaops/devices"
	"github.com/attnb/attnb/kernel/far"
	"github.com/attnb/attnb/kernel/wire"
)

func TestFarErrors(t *testing.T) {
	s := startSSHD(t)
	script := func(name, text string) string {
		path := filepath.Join(s.dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	l, err := net.Listen("tcp", "127.0.0.1:0") // and nobody behind it
	if err != nil {
		t.Fatal(err)
	}
	closed := strings.TrimPrefix(l.Addr().String(), "127.0.0.1:")
	l.Close()
	for name, c := range map[string]struct {
		set  func(*far.Options)
		want []string
	}{
		"another version": {func(o *far.Options) { o.Version = "0.0.9" }, []string{"127.0.0.1 has attnb " + version, "this machine 0.0.9", "install the same on both, by ./install.sh"}},
		"no attnb":        {func(o *far.Options) { o.Path = "/no/such/attnb" }, []string{"no attnb on 127.0.0.1", "/no/such/attnb", "install attnb " + version, "ATTNB_FAR=PATH"}},
		"an old attnb":    {func(o *far.Options) { o.Path = script("old", `echo 'attnb: unknown command "far"' >&2; exit 2`) }, []string{"knows nothing of links", version}},
		"another program": {func(o *far.Options) { o.Path = script("other", `echo hello; exit 3`) }, []string{"no link to 127.0.0.1: hello"}},
		"no such device":  {func(o *far.Options) { o.Target.Device = "cuda:99" }, []string{"no device process on 127.0.0.1: ", "ATTNB_DEVICE=cuda:99"}},
		"nobody listens":  {func(o *far.Options) { o.Target.Port = closed }, []string{"no link to 127.0.0.1: ", "Connection refused"}},
		"no permission":   {func(o *far.Options) { o.Target.User = "attnb-nobody" }, []string{"no link to 127.0.0.1: ", "Permission denied"}},
		"no such host":    {func(o *far.Options) { o.Target.Host = "attnb.invalid" }, []string{"no link to attnb.invalid: ", "resolve hostname"}},
		"no ssh":          {func(o *far.Options) { o.SSH = []string{"/no/such/ssh"} }, []string{"no link to 127.0.0.1: ", "/no/such/ssh"}},
	} {
		t.Run(name, func(t *testing.T) {
			here := *s
			here.t = t
			r := startRelay(&here, c.set)
			_, err := r.dial().Do(wire.Request{Kind: wire.KindList})
			var refused *wire.Error
			if !errors.As(err, &refused) || refused.Code != wire.LinkLost {
				t.Fatalf("%v", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q lacks %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%q has several lines", err)
			}
		})
	}
}

func TestFarSettings(t *testing.T) {
	for _, c := range [][2]string{
		{devices.Variable + "=ssh://-oProxyCommand=x", "no name of a host"},
		{devices.Variable + "=ssh://h:0", "a port is 1 to 65535"},
		{far.PathVariable + "=/a;b", "want the path of attnb on h"},
		{far.GraceVariable + "=soon", "ATTNB_GRACE=soon: want a time"},
		{devices.MemoryVariable + "=lots", "ATTNB_MEMORY=lots"},
	} {
		cmd := attnb("device", "--socket", filepath.Join(t.TempDir(), "s"))
		cmd.Env = append(cmd.Env, devices.Variable+"=ssh://h", c[0])
		out, _ := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), c[1]) {
			t.Errorf("%s: %v, %s", c[0], cmd.ProcessState, out)
		}
	}
}

package far

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestParseTarget(t *testing.T) {
	for spec, want := range map[string]Target{
		"ssh://gpu1":                        {Host: "gpu1"},
		"ssh://gpu1/":                       {},
		"ssh://me@gpu1:2222/cuda:1":         {Host: "gpu1", User: "me", Port: "2222", Device: "cuda:1"},
		"ssh://me@corp.example@jump":        {Host: "jump", User: "me@corp.example"},
		"ssh://10.0.0.7:22/host":            {Host: "10.0.0.7", Port: "22", Device: "host"},
		"ssh://[fe80::1%eth0]:2200":         {Host: "fe80::1%eth0", Port: "2200"},
		"ssh://[::1]":                       {Host: "::1"},
		"ssh://":                            {},
		"ssh://-oProxyCommand=touch":        {},
		"ssh://h;reboot":                    {},
		"ssh://h h":                         {},
		"ssh://$(id)":                       {},
		"ssh://-l@h":                        {},
		"ssh://h:":                          {},
		"ssh://h:022":                       {},
		"ssh://h:70000":                     {},
		"ssh://::1":                         {},
		"ssh://h/cuda:1/more":               {},
		"ssh://h/abacus":                    {},
		"ssh://h\nHost x":                   {},
		"ssh://" + strings.Repeat("h", 300): {},
		"host":                              {},
	} {
		got, err := ParseTarget(spec)
		if got != want || (err == nil) != (want.Host != "") {
			t.Errorf("%q: %+v, %v", spec, got, err)
		}
		if err != nil && (!strings.HasPrefix(err.Error(), "ATTNB_DEVICE=") || !strings.Contains(err.Error(), "want ssh://[user@]host[:port][/device]")) {
			t.Errorf("%q: %v", spec, err)
		}
	}
}

// What is the user's is an argument of its own, behind the options, and what the shell there reads is ours.
func TestCommand(t *testing.T) {
	target := Target{Host: "gpu1", User: "me", Port: "2222"}
	args, err := target.command([]string{"ssh", "-F", "conf"}, "")
	if err != nil || !reflect.DeepEqual(args[:3], []string{"ssh", "-F", "conf"}) || !reflect.DeepEqual(args[len(args)-7:], []string{"-p", "2222", "-l", "me", "--", "gpu1", remoteCommand}) {
		t.Errorf("%q, %v", args, err)
	}
	args, err = target.command(nil, "/opt/at-tn.b/bin/attnb")
	if err != nil || args[0] != "ssh" || args[len(args)-1] != "exec '/opt/at-tn.b/bin/attnb' far attach" {
		t.Errorf("%q, %v", args, err)
	}
	for _, path := range []string{"a b", "a'b", "$HOME/attnb", "a;b", "-x", "a\nb", "`id`"} {
		if args, err := target.command(nil, path); err == nil || args != nil {
			t.Errorf("%q: %q", path, args)
		}
	}
}

func TestParseGrace(t *testing.T) {
	for text, want := range map[string]time.Duration{"": 10 * time.Minute, "1s": time.Second, "2h": 2 * time.Hour, "0": 0, "-1m": 0, "soon": 0, "721h": 0, "10": 0} {
		got, err := ParseGrace(text)
		if got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

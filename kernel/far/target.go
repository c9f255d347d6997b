package far

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Scheme begins the value of ATTNB_DEVICE that names another machine.
const Scheme = "ssh://"

// Names of the environment variables that say more of it.
const (
	SSHVariable   = "ATTNB_SSH"   // the ssh to run and its options, separated by blanks: "ssh -F /home/me/ssh.conf". Empty: ssh
	PathVariable  = "ATTNB_FAR"   // path of attnb there. Empty: the attnb on PATH, else that of `./install.sh`
	GraceVariable = "ATTNB_GRACE" // how long tensors are kept there without a link, as "10m" or "2h". Empty: 10m
)

// Target is a machine that ssh reaches, and a device of it.
type Target struct {
	Host   string // a name of the user's ssh configuration, or an address
	User   string // empty: as ssh has it
	Port   string // empty: as ssh has it
	Device string // what ATTNB_DEVICE would be there; empty: what it is
}

var (
	hostName   = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,252}$`)
	address6   = regexp.MustCompile(`^\[[0-9A-Fa-f:.]{2,45}(%[A-Za-z0-9._-]{1,32})?\]$`)
	userName   = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._@-]{0,63}$`)
	deviceName = regexp.MustCompile(`^(auto|host|cuda(:[0-9]{1,4})?)$`)
	remotePath = regexp.MustCompile(`^[A-Za-z0-9._/+@=-]{1,999}$`)
)

// IsTarget says that the value of ATTNB_DEVICE names another machine.
func IsTarget(spec string) bool { return strings.HasPrefix(spec, Scheme) }

// ParseTarget reads ssh://[user@]host[:port][/device]. Nothing in it can be taken for an option, or for a word of a shell.
func ParseTarget(spec string) (Target, error) {
	bad := func(what string) (Target, error) {
		return Target{}, fmt.Errorf("ATTNB_DEVICE=%.300s: %s: want ssh://[user@]host[:port][/device], as ssh://gpu1 or ssh://me@gpu1:2222/cuda:1", spec, what)
	}
	rest, ok := strings.CutPrefix(spec, Scheme)
	if !ok {
		return bad("no " + Scheme)
	}
	var t Target
	var named bool
	rest, t.Device, named = strings.Cut(rest, "/")
	if named && !deviceName.MatchString(t.Device) {
		return bad("the device is auto, host, cuda or cuda:N")
	}
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		t.User, rest = rest[:at], rest[at+1:]
		if !userName.MatchString(t.User) {
			return bad("no name of a user")
		}
	}
	t.Host = rest
	if colon := strings.LastIndexByte(rest, ':'); colon > strings.LastIndexByte(rest, ']') {
		t.Host, t.Port = rest[:colon], rest[colon+1:]
		if n, err := strconv.Atoi(t.Port); err != nil || n < 1 || n > 65535 || t.Port != strconv.Itoa(n) {
			return bad("a port is 1 to 65535")
		}
	}
	switch {
	case address6.MatchString(t.Host):
		t.Host = strings.Trim(t.Host, "[]")
	case !hostName.MatchString(t.Host):
		return bad("no name of a host")
	}
	return t, nil
}

// remoteCommand finds attnb on PATH, or where ./install.sh puts it. It holds nothing of the user's.
const remoteCommand = `exec sh -c 'a=$(command -v attnb) || a=${XDG_DATA_HOME:-$HOME/.local/share}/attnb/bin/attnb; exec "$a" far attach'`

// command is the command line of ssh. path is that of attnb on the other machine, or empty. Options before those of ours are the user's, and win.
func (t Target) command(ssh []string, path string) ([]string, error) {
	args := append([]string(nil), ssh...)
	if len(args) == 0 {
		args = []string{"ssh"}
	}
	args = append(args, "-T", "-a", "-x", "-e", "none")
	for _, o := range []string{"BatchMode=yes", "ConnectTimeout=20", "ServerAliveInterval=5", "ServerAliveCountMax=3", "ClearAllForwardings=yes"} {
		args = append(args, "-o", o)
	}
	if t.Port != "" {
		args = append(args, "-p", t.Port)
	}
	if t.User != "" {
		args = append(args, "-l", t.User)
	}
	command := remoteCommand
	if path != "" {
		if !remotePath.MatchString(path) || path[0] == '-' {
			return nil, fmt.Errorf("%s=%.100q: want the path of attnb on %s, of letters, digits and . _ / + @ = -", PathVariable, path, t.Host)
		}
		command = "exec '" + path + "' far attach"
	}
	return append(args, "--", t.Host, command), nil
}

const (
	defaultGrace = 10 * time.Minute
	maxGrace     = 30 * 24 * time.Hour
)

// ParseGrace reads the value of [GraceVariable].
func ParseGrace(text string) (time.Duration, error) {
	if text == "" {
		return defaultGrace, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Second || d > maxGrace {
		return 0, fmt.Errorf("%s=%.100s: want a time of 1s to %dh, such as 10m or 2h", GraceVariable, text, int(maxGrace.Hours()))
	}
	return d, nil
}

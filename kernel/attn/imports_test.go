package attn_test

import (
	"os/exec"
	"strings"
	"testing"
)

// A cell links this package at every run. It may link what printing links anyway (fmt, os) and, beyond that, this list.
var alsoAllowed = map[string]bool{
	"bytes": true, "strings": true, // half of it is linked by os already
	"encoding/binary":                    true, // its two functions on fixed sizes; reflect comes with fmt
	"github.com/attnb/attnb/kernel/attn": true,
	"github.com/attnb/attnb/kernel/wire": true,
}

func TestImports(t *testing.T) {
	deps := func(packages ...string) []string {
		out, err := exec.Command("go", append([]string{"list", "-deps"}, packages...)...).Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Fields(string(out))
	}
	allowed := map[string]bool{}
	for _, p := range deps("fmt", "os") {
		allowed[p] = true
	}
	if allowed["net"] || allowed["encoding/json"] {
		t.Fatal("fmt itself brings what is forbidden: this test proves nothing")
	}
	for _, p := range deps("github.com/attnb/attnb/kernel/attn") {
		if !allowed[p] && !alsoAllowed[p] {
			t.Errorf("kernel/attn links %s: every cell pays for it", p)
		}
	}
}

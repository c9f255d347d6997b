package attn_test

import (
	"strings"
	"testing"
)

// The detectives, laws and audits in cells, which stop where one says another thing than it must.
func TestFindings(t *testing.T) {
	k := newKernel(t)
	r := k.run("find")
	if r.exit != 1 || !strings.HasPrefix(r.fail, "Require: CheckWrites: FAIL: hole: slots [3] were never written") || !strings.Contains(r.out, "must fail\n") {
		t.Errorf("find: exit %d, %q, fail %q\n%s", r.exit, r.stderr, r.fail, r.out)
	}
	for _, want := range []string{"FindLayout: pass: the declared layout fits", "FindRoPE: FAIL: pairing", "CheckCache: FAIL: row at another position", "RowsSum: pass: rows sum to 1: holds"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("find: no %q in\n%s", want, r.out)
		}
	}
	if len(r.displays) != 2 { // of the layouts
		t.Errorf("%d displays", len(r.displays))
	}
	k.good("probe")
	k.good("load")
	audit := k.good("audit")
	for _, want := range []string{"Audit Merge: pass: every stage is what f32 arithmetic makes of its inputs", "the first stage to depart is RoPE", "Ladder: pass: ", "0.001 is "} {
		if !strings.Contains(audit.out, want) {
			t.Errorf("audit: no %q in\n%s", want, audit.out)
		}
	}
	if len(audit.displays) != 2 {
		t.Errorf("%d displays", len(audit.displays))
	}
	if n := len(k.good("load").out); n == 0 {
		t.Error("nothing is there any more")
	}
}

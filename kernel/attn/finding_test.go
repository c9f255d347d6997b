package attn_test

import (
	"regexp"
	"strings"
	"testing"
)

// verdict is the first line of a finding's report.
var verdict = regexp.MustCompile(`(?:^|\n|<display>)[A-Z]\w+(?: \w+)?: (?:pass|FAIL): `)

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
	if n := len(verdict.FindAllString(r.out, -1)); n < 30 || len(r.displays) != n {
		t.Errorf("%d findings and %d displays: each has a picture", n, len(r.displays))
	}
	k.good("probe")
	k.good("load")
	audit := k.good("audit")
	for _, want := range []string{"Audit Merge: pass: every stage is what f32 arithmetic makes of its inputs", "the first stage to depart is RoPE", "Ladder: pass: ", "0.001 is "} {
		if !strings.Contains(audit.out, want) {
			t.Errorf("audit: no %q in\n%s", want, audit.out)
		}
	}
	if n := len(verdict.FindAllString(audit.out, -1)); n != 5 || len(audit.displays) != n {
		t.Errorf("%d findings and %d displays: each has a picture", n, len(audit.displays))
	}
	if n := len(k.good("load").out); n == 0 {
		t.Error("nothing is there any more")
	}
}

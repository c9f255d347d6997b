package echarts

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"
)

// The committed bundle is the one that build.mjs wrote, and of the versions that the lock file pins.
func TestBundleIsTheManifests(t *testing.T) {
	type file struct {
		Bytes  int
		SHA256 string
	}
	var manifest struct {
		ECharts, ZRender, TSLib, ESBuild string
		Script, Packed                   file
	}
	read(t, "manifest.json", &manifest)

	check := func(name string, got []byte, want file) {
		t.Helper()
		sum := sha256.Sum256(got)
		if h := hex.EncodeToString(sum[:]); len(got) != want.Bytes || h != want.SHA256 {
			t.Errorf("%s: %d bytes, sha256 %s; the manifest says %d, %s", name, len(got), h, want.Bytes, want.SHA256)
		}
	}
	check("echarts.min.js.gz", packed, manifest.Packed)
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	script, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	check("echarts.min.js", script, manifest.Script)

	var lock struct {
		Packages map[string]struct{ Version, Integrity string }
	}
	read(t, "package-lock.json", &lock)
	for name, version := range map[string]string{
		"echarts": manifest.ECharts, "zrender": manifest.ZRender, "tslib": manifest.TSLib, "esbuild": manifest.ESBuild,
	} {
		p := lock.Packages["node_modules/"+name]
		if p.Version != version || p.Integrity == "" {
			t.Errorf("%s: the bundle holds %q, the lock file pins %q with integrity %q", name, version, p.Version, p.Integrity)
		}
	}
	if want := `window["` + Global + `"]=`; !bytes.Contains(script, []byte(want)) {
		t.Errorf("the script does not set %s", want)
	}
	if !strings.HasSuffix(Global, manifest.ECharts) {
		t.Errorf("the global name %q does not carry the version %s", Global, manifest.ECharts)
	}
	if i := bytes.Index(script, []byte("</script")); i >= 0 {
		t.Errorf("the script would end a script element at byte %d", i)
	}
}

func TestLicencesLieBeside(t *testing.T) {
	for name, want := range map[string]string{
		"LICENSE":         "Apache License",
		"NOTICE":          "Apache ECharts",
		"LICENSE-d3":      "Bostock",
		"LICENSE-zrender": "Baidu",
		"LICENSE-tslib":   "Microsoft",
	} {
		b, err := os.ReadFile(name)
		if err != nil || !bytes.Contains(b, []byte(want)) {
			t.Errorf("%s: %v, want it to name %q", name, err, want)
		}
	}
}

func read(t *testing.T, name string, into any) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		t.Fatal(name, err)
	}
}

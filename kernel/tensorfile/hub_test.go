package tensorfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const commit = "0123456789abcdef0123456789abcdef01234567"

// hubCache is a cache as huggingface_hub leaves it: one commit of org/tiny, its files links to blobs.
func hubCache(t *testing.T) (cache, repo string) {
	t.Helper()
	cache, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	repo = filepath.Join(cache, "models--org--tiny")
	put(t, filepath.Join(repo, "refs", "main"), commit)
	put(t, filepath.Join(repo, "blobs", "aa"), neoxConfig)
	put(t, filepath.Join(repo, "blobs", "bb"), string(weightsFile(t, "F32", neoxShapes("gpt_neox.layers."))))
	link(t, "../../blobs/aa", filepath.Join(repo, "snapshots", commit, "config.json"))
	link(t, "../../blobs/bb", filepath.Join(repo, "snapshots", commit, "model.safetensors"))
	return cache, repo
}

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, to, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(to, path); err != nil {
		t.Fatal(err)
	}
}

func TestFindModel(t *testing.T) {
	cache, repo := hubCache(t)
	want := filepath.Join(repo, "snapshots", commit)
	put(t, filepath.Join(repo, "refs", "pr", "1"), commit+"\n")
	elsewhere := filepath.Join(t.TempDir(), "cache")
	link(t, cache, elsewhere) // as where ~/.cache is on another disk
	for _, at := range []string{"", "main", "pr/1", commit} {
		for _, c := range []string{cache, elsewhere} {
			dir, err := FindModel(c, "org/tiny", at)
			if err != nil || dir != want {
				t.Errorf("%q: %q, %v", at, dir, err)
			}
		}
	}
	m, err := OpenModel(want)
	if err != nil || len(m.Layers) != 2 {
		t.Fatalf("%+v, %v", m, err)
	}
	if _, _, err := Load(m.Weights, m.Layers[0].QKV.Weight); err != nil {
		t.Error(err)
	}
	// What was fetched by its commit alone has no refs.
	if err := os.RemoveAll(filepath.Join(repo, "refs")); err != nil {
		t.Fatal(err)
	}
	if dir, err := FindModel(cache, "org/tiny", ""); err != nil || dir != want {
		t.Errorf("%q, %v", dir, err)
	}
	other := strings.Repeat("f", 40)
	put(t, filepath.Join(repo, "snapshots", other, "config.json"), "{}")
	if _, err := FindModel(cache, "org/tiny", ""); err == nil || !strings.HasSuffix(err.Error(), "no revision main: it holds "+commit+", "+other) {
		t.Error(err)
	}
	if dir, err := FindModel(cache, "org/tiny", other); err != nil || filepath.Base(dir) != other { // files, where links cannot be made
		t.Errorf("%q, %v", dir, err)
	}
}

func TestFindModelRefuses(t *testing.T) {
	for _, c := range []struct {
		name, repo, at, want string
		change               func(t *testing.T, cache, repo string)
	}{
		{"no name", "", "", ": \"\" is not the name of a repository, as gpt2 or org/name", nil},
		{"up", "../tiny", "", `: "../tiny" is not the name of a repository, as gpt2 or org/name`, nil},
		{"dots", "org/..", "", `: "org/.." is not the name of a repository, as gpt2 or org/name`, nil},
		{"three parts", "a/b/c", "", `: "a/b/c" is not the name of a repository, as gpt2 or org/name`, nil},
		{"a separator", "org--tiny", "", `: "org--tiny" is not the name of a repository, as gpt2 or org/name`, nil},
		{"lines", "org/tiny\n", "", `: "org/tiny\n" is not the name of a repository, as gpt2 or org/name`, nil},
		{"not there", "org/other", "", ": no model org/other in this cache, and nothing is fetched: no such file", nil},
		{"a revision that leads out", "org/tiny", "../../x", `/models--org--tiny: "../../x" is not the name of a revision`, nil},
		{"no such revision", "org/tiny", "v1", "/models--org--tiny: no revision v1: it holds " + commit, nil},
		{"a ref that leads out", "org/tiny", "", `/models--org--tiny: main in refs holds "../../../etc", which is not the name of a commit`, func(t *testing.T, _, repo string) {
			put(t, filepath.Join(repo, "refs", "main"), "../../../etc")
		}},
		{"a ref that is a link", "org/tiny", "", "/models--org--tiny: main in refs is not a short file", func(t *testing.T, _, repo string) {
			if err := os.Remove(filepath.Join(repo, "refs", "main")); err != nil {
				t.Fatal(err)
			}
			link(t, "/etc/hostname", filepath.Join(repo, "refs", "main"))
		}},
		{"a ref without end", "org/tiny", "", "/models--org--tiny: main in refs is not a short file", func(t *testing.T, _, repo string) {
			put(t, filepath.Join(repo, "refs", "main"), strings.Repeat("0", 1<<20))
		}},
		{"a ref to what is gone", "org/tiny", "", "/models--org--tiny/snapshots/abcdef0: no such file", func(t *testing.T, _, repo string) {
			put(t, filepath.Join(repo, "refs", "main"), "abcdef0")
		}},
		{"a file that is a link out", "org/tiny", "", "/models--org--tiny/snapshots/" + commit + `: "vocab.json" is a link out of the cache`, func(t *testing.T, _, repo string) {
			outside := filepath.Join(t.TempDir(), "secret")
			put(t, outside, "{}")
			link(t, outside, filepath.Join(repo, "snapshots", commit, "vocab.json"))
		}},
		{"a file of another repository", "org/tiny", "", "/models--org--tiny/snapshots/" + commit + `: "vocab.json" is a link out of the cache`, func(t *testing.T, cache, repo string) {
			put(t, filepath.Join(cache, "models--org--tiny2", "blobs", "cc"), "{}")
			link(t, "../../../models--org--tiny2/blobs/cc", filepath.Join(repo, "snapshots", commit, "vocab.json"))
		}},
		{"not downloaded whole", "org/tiny", "", "/models--org--tiny/snapshots/" + commit + `: "model.safetensors" is a link to nothing: it was not downloaded whole`, func(t *testing.T, _, repo string) {
			if err := os.Remove(filepath.Join(repo, "blobs", "bb")); err != nil {
				t.Fatal(err)
			}
		}},
		{"a commit that is a link out", "org/tiny", "abcdef0", "/models--org--tiny/snapshots/abcdef0: not a directory", func(t *testing.T, _, repo string) {
			link(t, t.TempDir(), filepath.Join(repo, "snapshots", "abcdef0"))
		}},
		{"all snapshots elsewhere", "org/tiny", "", "/models--org--tiny/snapshots/" + commit + `: "` + commit + `" is a link out of the cache`, func(t *testing.T, _, repo string) {
			outside := t.TempDir()
			if err := os.Rename(filepath.Join(repo, "snapshots"), filepath.Join(outside, "snapshots")); err != nil {
				t.Fatal(err)
			}
			link(t, filepath.Join(outside, "snapshots"), filepath.Join(repo, "snapshots"))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cache, repo := hubCache(t)
			if c.change != nil {
				c.change(t, cache, repo)
			}
			dir, err := FindModel(cache, c.repo, c.at)
			if dir != "" || err == nil || err.Error() != cache+c.want {
				t.Errorf("%q, error %v, want %q", dir, err, cache+c.want)
			}
		})
	}
	if _, err := FindModel(t.TempDir(), "gpt2", ""); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v does not say that it is not there", err)
	}
	if _, err := FindModel("cache", "gpt2", ""); err == nil || err.Error() != "cache: the path is not absolute" {
		t.Error(err)
	}
}

func TestHubCache(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		want string
	}{
		{map[string]string{"HOME": "/home/a"}, "/home/a/.cache/huggingface/hub"},
		{map[string]string{"HOME": "/home/a", "XDG_CACHE_HOME": "/c"}, "/c/huggingface/hub"},
		{map[string]string{"HOME": "/home/a", "XDG_CACHE_HOME": "/c", "HF_HOME": "/hf"}, "/hf/hub"},
		{map[string]string{"HOME": "/home/a", "HF_HOME": "~/hf"}, "/home/a/hf/hub"},
		{map[string]string{"HF_HOME": "/hf", "HUGGINGFACE_HUB_CACHE": "/older"}, "/older"},
		{map[string]string{"HF_HOME": "/hf", "HUGGINGFACE_HUB_CACHE": "/older", "HF_HUB_CACHE": "/newer/"}, "/newer"},
		{map[string]string{"HF_HUB_CACHE": "$SCRATCH/hub", "SCRATCH": "/s"}, "/s/hub"},
		{map[string]string{"HF_HOME": "relative"}, ""},
		{nil, ""},
	} {
		got, err := HubCache(func(name string) string { return c.env[name] })
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%v: %q, %v, want %q", c.env, got, err, c.want)
		}
	}
}

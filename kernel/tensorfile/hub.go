package tensorfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// A Hugging Face cache has, for each repository of a model, a folder models--ORG--NAME: refs/REVISION holds the name of a commit,
// snapshots/COMMIT the files, which are links to blobs/. Layout: huggingface.co/docs/hub/local-cache. It is read, never written, and
// nothing is fetched.
var (
	repoName   = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)?$`)
	revision   = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*$`)
	commitName = regexp.MustCompile(`^[0-9a-f]{7,64}$`)
)

const (
	maxRepoName = 96
	maxRef      = 256
)

// HubCache is the directory of the cache that the environment names: HF_HUB_CACHE, else HUGGINGFACE_HUB_CACHE, else hub in HF_HOME,
// else huggingface/hub in XDG_CACHE_HOME or ~/.cache. getenv is as [os.Getenv].
func HubCache(getenv func(string) string) (string, error) {
	dir := getenv("HF_HUB_CACHE")
	if dir == "" {
		dir = getenv("HUGGINGFACE_HUB_CACHE")
	}
	if home := getenv("HF_HOME"); dir == "" && home != "" {
		dir = filepath.Join(home, "hub")
	}
	if cache := getenv("XDG_CACHE_HOME"); dir == "" && cache != "" {
		dir = filepath.Join(cache, "huggingface", "hub")
	}
	if dir == "" {
		dir = "~/.cache/huggingface/hub"
	}
	dir = os.Expand(dir, getenv)
	if rest, ok := strings.CutPrefix(dir, "~/"); ok {
		dir = filepath.Join(getenv("HOME"), rest)
	}
	if !filepath.IsAbs(dir) {
		return "", &Error{dir, errors.New("the directory of the Hugging Face cache is not absolute")}
	}
	return filepath.Clean(dir), nil
}

// FindModel returns the directory, in a Hugging Face cache, of a repository's model: of "gpt2", or "org/name". at is a branch, a tag or a
// commit; "" is main, or the only commit that is there. All files in that directory lie in the repository's own part of the cache:
// one that is a link out of it is refused, as is a name that leads out of it. Errors are [*Error].
func FindModel(cache, repo, at string) (string, error) {
	if len(repo) > maxRepoName || !repoName.MatchString(repo) || strings.Contains(repo, "--") || strings.Contains(repo, "..") {
		return "", &Error{cache, fmt.Errorf("%.100q is not the name of a repository, as gpt2 or org/name", repo)}
	}
	if !filepath.IsAbs(cache) {
		return "", &Error{cache, errors.New("the path is not absolute")}
	}
	root := filepath.Join(cache, "models--"+strings.ReplaceAll(repo, "/", "--"))
	resolved, err := filepath.EvalSymlinks(root) // the cache may itself be reached by a link
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", &Error{cache, fmt.Errorf("no model %s in this cache, and nothing is fetched: %w", repo, noSuchFile{})}
	case err != nil:
		return "", &Error{cache, bare(err)}
	}
	commit, err := commitOf(resolved, at)
	if err != nil {
		return "", &Error{root, err}
	}
	dir := filepath.Join(resolved, "snapshots", commit)
	if err := staysIn(resolved, dir); err != nil {
		return "", &Error{dir, err}
	}
	return dir, nil
}

// commitOf is the commit that a revision stands for.
func commitOf(root, at string) (string, error) {
	if at != "" && (len(at) > maxRef || !revision.MatchString(at) || strings.Contains(at, "..")) {
		return "", fmt.Errorf("%.100q is not the name of a revision", at)
	}
	name := at
	if name == "" {
		name = "main"
	}
	commit, err := readRef(filepath.Join(root, "refs", name))
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return commit, err
	}
	there, err := os.ReadDir(filepath.Join(root, "snapshots"))
	if err != nil {
		return "", bare(err)
	}
	var names []string
	for _, entry := range there {
		if commitName.MatchString(entry.Name()) {
			names = append(names, entry.Name())
		}
	}
	for _, n := range names {
		if n == at || at == "" && len(names) == 1 {
			return n, nil
		}
	}
	return "", fmt.Errorf("no revision %s: it holds %s", name, list(names))
}

// readRef reads the name of a commit, and sees that it is one.
func readRef(path string) (string, error) {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return "", bare(err)
	case !info.Mode().IsRegular() || info.Size() > maxRef:
		return "", errors.New(filepath.Base(path) + " in refs is not a short file")
	}
	f, err := os.Open(path)
	if err != nil {
		return "", bare(err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxRef+1))
	commit := strings.TrimSpace(string(text))
	if err != nil || !commitName.MatchString(commit) {
		return "", fmt.Errorf("%s in refs holds %.80q, which is not the name of a commit", filepath.Base(path), commit)
	}
	return commit, nil
}

// staysIn sees that a directory and all files in it lie below root, wherever links lead. root has no links.
func staysIn(root, dir string) error {
	inside := func(path string) error {
		to, err := filepath.EvalSymlinks(path)
		if err != nil {
			return fmt.Errorf("%q is a link to nothing: it was not downloaded whole", filepath.Base(path))
		}
		if rest, err := filepath.Rel(root, to); err != nil || !filepath.IsLocal(rest) {
			return fmt.Errorf("%q is a link out of the cache", filepath.Base(path))
		}
		return nil
	}
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return bare(err)
	case !info.IsDir():
		return errors.New("not a directory")
	}
	if err := inside(dir); err != nil {
		return err
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return bare(err)
	}
	for _, f := range files {
		if err := inside(filepath.Join(dir, f.Name())); err != nil {
			return err
		}
	}
	return nil
}

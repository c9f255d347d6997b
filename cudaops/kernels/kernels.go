// Package kernels embeds the compiled CUDA kernels: a cubin for each processor generation, and PTX for those to come.
//
// The sources beside it are compiled by build.py (make kernels), which needs no GPU. manifest.json says from which
// sources, by which compiler; a test fails where they and the sources disagree.
package kernels

import (
	"archive/zip"
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
)

//go:embed images.zip
var images []byte

//go:embed manifest.json
var manifest []byte

// Manifest ties the images to their sources. Hashes are SHA-256, in hex.
type Manifest struct {
	Compiler string            `json:"compiler"`
	Options  []string          `json:"options"`
	Sources  map[string]string `json:"sources"`
	Images   map[string]string `json:"images"`
}

// ReadManifest returns the manifest of the embedded images.
func ReadManifest() (Manifest, error) {
	var m Manifest
	if err := json.Unmarshal(manifest, &m); err != nil {
		return m, fmt.Errorf("kernels: manifest: %w", err)
	}
	return m, nil
}

// cubins are the generations compiled for, newest first. A cubin runs on its own generation and on later minor ones, but one for
// features of a single processor (a) on that alone: there is no 9.1.
var cubins = []struct {
	major, minor int
	name         string
}{{9, 0, "sm_90a"}, {8, 0, "sm_80"}, {7, 5, "sm_75"}}

// Name is the image for a GPU of the given compute capability; "" where none runs on it.
func Name(major, minor int) string {
	for _, c := range cubins {
		if c.major == major && c.minor <= minor {
			return c.name
		}
	}
	if newest := cubins[0]; major > newest.major {
		return fmt.Sprintf("compute_%d%d", newest.major, newest.minor)
	}
	return ""
}

// Image returns the image of a name.
func Image(name string) ([]byte, error) {
	z, err := zip.NewReader(bytes.NewReader(images), int64(len(images)))
	if err != nil {
		return nil, fmt.Errorf("kernels: images: %w", err)
	}
	f, err := z.Open(name)
	if err != nil {
		return nil, fmt.Errorf("kernels: image %s: %w", name, err)
	}
	image, err := io.ReadAll(f)
	if err != nil {
		return nil, fmt.Errorf("kernels: image %s: %w", name, err)
	}
	return image, nil
}

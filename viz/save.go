package viz

import (
	"encoding/base64"
	"fmt"
	"html"
	"os"
	"path/filepath"
)

// Save writes a picture to a file: a labelled PNG, or a page, by the end of its name. A page of a [Heatmap] of up to 64 x 64 cells is
// interactive, one of larger ones of several panels is a [Heatmap.Gallery], every other holds the PNG. A page needs nothing but itself.
func Save(path string, d Drawable) error {
	var data []byte
	switch ext := filepath.Ext(path); ext {
	case ".png":
		p, err := d.Picture()
		if err != nil {
			return err
		}
		data = p.PNG
	case ".html":
		body, err := fragment(d)
		if err != nil {
			return err
		}
		data = fmt.Appendf(nil, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"color-scheme\" content=\"light dark\"><title>attnb</title></head>\n"+
			"<body style=\"font-family:sans-serif\">\n%s</body></html>\n", body)
	default:
		return fmt.Errorf("save %s: %q is neither .png nor .html", path, ext)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		return fmt.Errorf("save: %w", err)
	}
	return nil
}

// fragment is the most that a page can show of a picture.
func fragment(d Drawable) (string, error) {
	if h, ok := d.(Heatmap); ok {
		if s, err := h.HTML(); err == nil {
			return s, nil
		}
		if len(h.Matrices) > 1 {
			if s, err := h.Gallery(); err == nil {
				return s, nil
			}
		}
	}
	p, err := d.Picture()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(`<img src="data:image/png;base64,%s" width="%d" height="%d" alt="%s">`,
		base64.StdEncoding.EncodeToString(p.PNG), p.Width, p.Height, html.EscapeString(p.Alt)), nil
}

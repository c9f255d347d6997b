package viz

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"html"
	"image"
	"strings"
)

// maxGallery bounds the bytes of a gallery: outputs above 1 MB make notebooks slow.
const maxGallery = 1 << 20

// Gallery renders the heatmap as an HTML fragment in which a click on a panel enlarges it, and a click on that goes back. It needs
// neither a kernel nor a script nor the network: everything is in the fragment, also where the notebook is opened again. The
// enlarged panels have the scale of all. Where styles are taken out of a page, as of a notebook that is not trusted, the
// picture of all panels is left.
//
// A fragment has at most 1 MB. Where that takes it, the enlarged panels are pooled, and say so; where it does not do, the error is
// a *[TooLargeError]: pick some of the matrices.
func (h Heatmap) Gallery() (string, error) {
	if err := h.check(); err != nil {
		return "", err
	}
	all := h.prepare()
	still, err := all.picture()
	if err != nil {
		return "", err
	}
	for side := oneSide; side >= oneSide/8; side /= 2 {
		size := len(still.PNG)
		var one []Picture
		for i := range h.Matrices {
			p, err := h.alone(i, side, all.scale).Picture()
			if err != nil {
				return "", err
			}
			one = append(one, p)
			if size += len(p.PNG); base64.StdEncoding.EncodedLen(size) > maxGallery {
				break
			}
		}
		if len(one) == len(h.Matrices) && base64.StdEncoding.EncodedLen(size)+len(one)*1024 <= maxGallery {
			return all.gallery(still, one)
		}
	}
	return "", &TooLargeError{h.Title, len(h.Matrices), h.rows(), h.cols()}
}

// alone is the picture of one matrix on the scale of all.
func (h Heatmap) alone(i, side int, shared scale) Heatmap {
	one := h
	one.Matrices, one.Marks = h.Matrices[i:i+1], nil
	for _, m := range h.Marks {
		if m.Matrix == i {
			m.Matrix = 0
			one.Marks = append(one.Marks, m)
		}
	}
	one.shared, one.room = &shared, image.Pt(side, side)
	if len(h.Matrices) > 1 {
		one.said = append([]string{fmt.Sprintf("on the scale of all %d panels", len(h.Matrices))}, h.said...)
	}
	return one
}

// gallery puts the pictures together. A radio button that nobody sees holds which one is shown; its labels are the panels.
func (d *drawing) gallery(still Picture, one []Picture) (string, error) {
	var salt [8]byte // so that the same picture may stand in a page twice
	if _, err := rand.Read(salt[:]); err != nil {
		return "", fmt.Errorf("heatmap %q: %w", d.Title, err)
	}
	id := fmt.Sprintf("attnb-%x", salt)
	var rules, radios, labels, large strings.Builder
	fmt.Fprintf(&rules, "#%s label{cursor:zoom-in}#%s label:hover{outline:2px solid #ff8c00;outline-offset:2px}#%s .one{display:none;cursor:zoom-out;background-size:100%% 100%%}\n", id, id, id)
	for i, p := range one {
		name := d.Matrices[i].Name
		if name == "" {
			name = fmt.Sprintf("matrix %d", i)
		}
		fmt.Fprintf(&rules, "#%s-%d:checked~.all{display:none}#%s-%d:checked~.p%d{display:block;width:%dpx;height:%dpx;background-image:url(data:image/png;base64,%s)}\n",
			id, i, id, i, i, p.Width, p.Height, base64.StdEncoding.EncodeToString(p.PNG))
		fmt.Fprintf(&radios, `<input type="radio" name="%s" id="%s-%d" style="display:none">`, id, id, i)
		r := d.layout.panels[i]
		x, y := css(r.Min)
		fmt.Fprintf(&labels, `<label for="%s-%d" title="enlarge %s" style="position:absolute;left:%gpx;top:%gpx;width:%spx;height:%spx"></label>`,
			id, i, html.EscapeString(visible(name)), x, y, px(r.Dx()), px(r.Dy()))
		fmt.Fprintf(&large, `<label class="one p%d" for="%s-all" role="img" aria-label="%s" title="back to all"></label>`, i, id, html.EscapeString(p.Alt))
	}
	return fmt.Sprintf(`<div class="attnb-gallery" id="%s" style="overflow-x:auto"><style>%s</style><input type="radio" name="%s" id="%s-all" style="display:none" checked>%s`+
		`<div class="all" style="position:relative;width:%dpx"><img src="data:image/png;base64,%s" width="%d" height="%d" style="max-width:none" alt="%s">%s</div>%s</div>`,
		id, rules.String(), id, id, radios.String(), still.Width, base64.StdEncoding.EncodeToString(still.PNG), still.Width, still.Height,
		html.EscapeString(still.Alt), labels.String(), large.String()), nil
}

package widgets

import (
	_ "embed"
	"encoding/base64"
	"fmt"
	"html"
)

//go:embed still.js
var stillScript string

// still is HTML that shows a picture's first PNG wherever no page shows the picture itself: a widget's view is nothing but an
// error where its kernel is gone. id is the entry "still" of the picture's state, by which the two find each other (picture.js).
func still(id string, picture State) string {
	png, _ := picture["png"].([]byte)
	alt, _ := picture["alt"].(string)
	return fmt.Sprintf(`<div class="attnb-still" data-attnb-still="%s" style="overflow-x:auto"><img src="data:image/png;base64,%s" width="%d" height="%d" alt="%s"></div>
<script>(() => {
const id = %q;
%s})()</script>
`, id, base64.StdEncoding.EncodeToString(png), picture["width"], picture["height"], html.EscapeString(alt), id, stillScript)
}

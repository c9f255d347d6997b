// Package echarts holds the part of Apache ECharts that the pictures use: heatmap and custom series, grid, tooltip, data
// zoom, visual map and title on canvas. Nothing is fetched from a network when a picture is drawn.
//
// The script is bundled, minified and packed by build.mjs from the npm packages that package-lock.json pins. ECharts is
// licensed under Apache-2.0: LICENSE, NOTICE and the licences of what it includes lie beside it.
package echarts

import (
	_ "embed"
	"encoding/base64"
	"sync"
)

// Global is the property of window under which the script leaves the library.
const Global = "attnb-echarts-5.6.0"

//go:embed echarts.min.js.gz
var packed []byte

// Packed is the script, gzipped, in base64: what a browser's DecompressionStream unpacks.
var Packed = sync.OnceValue(func() string { return base64.StdEncoding.EncodeToString(packed) })

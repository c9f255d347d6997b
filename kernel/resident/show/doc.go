// Package show makes what cells and pages look at: heatmaps, the drawings of package figure, maps that zoom, and explorations, whose
// controls run a chain again. A [Gallery] keeps displays until they are fetched, and the pictures that are live.
package show

package widgets

import "math"

// Packages on the page, in the versions of ipywidgets 8 and anywidget 0.11.
const (
	moduleBase     = "@jupyter-widgets/base"
	moduleControls = "@jupyter-widgets/controls"
	moduleVersion  = "2.0.0"
	moduleAny      = "anywidget"
	versionAny     = "~0.11.*"
)

// control is one of ipywidgets' own, with more of its state.
func control(name string, state, more State) Kind {
	for key, value := range more {
		state[key] = value
	}
	return Kind{Model: name + "Model", View: name + "View", Module: moduleControls, Version: moduleVersion, State: state}
}

// The constructors below take the state that a control cannot be without, and in more what else ipywidgets gives it a name for: description, disabled,
// layout and style (by [Model.Ref]), ...

// IntSlider is a slider over whole numbers. Value: "value".
func IntSlider(value, from, to, step int, more State) Kind {
	return control("IntSlider", State{"value": value, "min": from, "max": to, "step": step, "description": "",
		"continuous_update": true, "readout": true, "readout_format": "d"}, more)
}

// IntText is a field for a whole number. Value: "value".
func IntText(value int, more State) Kind {
	return control("IntText", State{"value": value, "step": 1, "description": "", "continuous_update": false}, more)
}

// FloatSlider is a slider. Value: "value".
func FloatSlider(value, from, to, step float64, more State) Kind {
	return control("FloatSlider", State{"value": value, "min": from, "max": to, "step": step, "description": "",
		"continuous_update": true, "readout": true, "readout_format": ".2f"}, more)
}

// FloatLogSlider is a slider on a logarithmic scale, in a hundred steps. Value: "value".
func FloatLogSlider(value, from, to float64, more State) Kind {
	low, high := math.Log10(from), math.Log10(to)
	return control("FloatLogSlider", State{"value": value, "base": 10, "min": low, "max": high, "step": (high - low) / 100,
		"description": "", "continuous_update": true, "readout": true, "readout_format": ".4~r"}, more)
}

// Dropdown is a list of options. Value: "index".
func Dropdown(options []string, index int, more State) Kind {
	return control("Dropdown", State{"_options_labels": options, "index": index, "description": ""}, more)
}

// Checkbox is a box with a tick. Value: "value".
func Checkbox(value bool, description string, more State) Kind {
	return control("Checkbox", State{"value": value, "description": description, "indent": false}, more)
}

// HTML is a piece of HTML, which is not checked. Value: "value".
func HTML(html string, more State) Kind {
	return control("HTML", State{"value": html, "description": "", "placeholder": "\u200b"}, more)
}

// Label is a line of text. Value: "value".
func Label(text string, more State) Kind {
	return control("Label", State{"value": text, "description": "", "placeholder": "\u200b"}, more)
}

// Image is a picture in one of the web's formats ("png"). Value: "value".
func Image(format string, picture []byte, more State) Kind {
	return control("Image", State{"format": format, "value": picture, "width": "", "height": ""}, more)
}

// HBox and VBox lay other models side by side and below each other.
func HBox(children []*Model, more State) Kind { return box("HBox", children, more) }

// VBox is described at HBox.
func VBox(children []*Model, more State) Kind { return box("VBox", children, more) }

func box(name string, children []*Model, more State) Kind {
	refs := make([]any, len(children))
	for i, child := range children {
		refs[i] = child.Ref()
	}
	return control(name, State{"children": refs, "box_style": ""}, more)
}

// Layout is CSS of a view, for "layout": width, padding, flex_flow, align_items, ...
func Layout(css State) Kind {
	return Kind{Model: "LayoutModel", View: "LayoutView", Module: moduleBase, Version: moduleVersion, State: css}
}

// SliderStyle is for "style" of a slider, DescriptionStyle for that of a list; both have a "description_width".
func SliderStyle(css State) Kind { return style("SliderStyleModel", css) }

// DescriptionStyle is described at SliderStyle.
func DescriptionStyle(css State) Kind { return style("DescriptionStyleModel", css) }

func style(model string, css State) Kind {
	return Kind{Model: model, View: "StyleView", Module: moduleControls, ViewModule: moduleBase, Version: moduleVersion, State: css}
}

// Any is a model whose view is an ES module of ours, run by anywidget: its default export has render({model, el}), and the module
// reads and sets state by name. id tells modules apart.
func Any(id, esm, css string, state State) Kind {
	all := State{"_esm": esm, "_anywidget_id": id}
	if css != "" {
		all["_css"] = css
	}
	for key, value := range state {
		all[key] = value
	}
	return Kind{Model: "AnyModel", View: "AnyView", Module: moduleAny, Version: versionAny, State: all}
}

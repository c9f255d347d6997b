// Package widgets speaks the Jupyter widgets protocol, version 2.1, as the side that owns the models. Front ends that have
// ipywidgets' part of it (JupyterLab and Notebook with jupyterlab-widgets, VS Code, Colab) show them.
//
// A [Model] is state, and a view of it on any number of pages: one of ipywidgets' own controls ([IntSlider], [Dropdown], [HBox],
// ...) or an anywidget model ([Any]) that brings its own ES module. A [Manager] holds the models of one kernel and
// answers for them: it outlives cells, and answers while one runs. A page that is loaded anew asks it for all states.
//
// [Manager.Explore] shows a picture of the device process with the controls that run its chain again.
//
// The package knows neither sockets nor the device: it sends through a [Sender] and computes through a [Device].
//
// The protocol: https://github.com/jupyter-widgets/ipywidgets/blob/main/packages/schema/messages.md.
package widgets

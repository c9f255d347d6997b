"""The Jupyter widgets protocol as a front end speaks it: pictures with controls, without a browser."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import anywidget
import ipywidgets
import pytest

from conftest import ATTN, TIMEOUT, Kernel

LAYER = (
    ATTN
    + """%%
x := make([]float64, 12*3*4*16)
for i := range x { x[i] = 1.5 * math.Sin(float64(i*i%997)) }
q, k, _ := attn.FromSlice(x, "seq hidden", 12, 3*4*16).SplitHeads(attn.NeoX(4))
q, k = q.RoPE(attn.HalfSplit(8)), k.RoPE(attn.HalfSplit(8))
"""
)
EXPLORE = LAYER + 'attn.Explore(attn.Scores(q, k, attn.Causal).Softmax(), attn.Dial("offset", -64, 64))'
VIEW = "application/vnd.jupyter.widget-view+json"


class Front:
    """What a page knows of the widgets: their states, by the messages that came."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.client = kernel.client
        self.states: dict[str, dict[str, Any]] = {}
        self.closed: set[str] = set()
        self.messages: list[dict[str, Any]] = []

    def send(self, kind: str, content: dict[str, Any]) -> str:
        message = self.client.session.msg(kind, content)
        self.client.shell_channel.send(message)
        return message["header"]["msg_id"]

    def update(self, model: str, **state: Any) -> str:
        return self.send("comm_msg", {"comm_id": model, "data": {"method": "update", "state": state, "buffer_paths": []}})

    def take(self, timeout: float = TIMEOUT) -> dict[str, Any]:
        message = self.client.get_iopub_msg(timeout=timeout)
        self.messages.append(message)
        content = message["content"]
        if message["msg_type"] == "comm_open":
            assert message["metadata"]["version"].startswith("2.")
            assert content["target_name"] == "jupyter.widget"
            self.merge(content["comm_id"], content["data"], message["buffers"])
        elif message["msg_type"] == "comm_msg" and content["data"]["method"] in ("update", "echo_update"):
            self.merge(content["comm_id"], content["data"], message["buffers"])
        elif message["msg_type"] == "comm_close":
            self.closed.add(content["comm_id"])
        return message

    def merge(self, model: str, data: dict[str, Any], buffers: list[Any]) -> None:
        state = self.states.setdefault(model, {})
        state.update(data["state"])
        for path, buffer in zip(data["buffer_paths"], buffers, strict=True):
            assert len(path) == 1
            state[path[0]] = bytes(buffer)

    def until(self, what: Any, timeout: float = TIMEOUT) -> dict[str, Any]:
        """Takes messages up to the first for which what holds."""
        deadline = time.monotonic() + timeout
        while True:
            message = self.take(max(0.1, deadline - time.monotonic()))
            if what(message):
                return message

    def idle(self, msg_id: str) -> list[dict[str, Any]]:
        """What came up to the end of a request, of that request."""
        self.until(lambda m: m["msg_type"] == "status" and m["parent_header"].get("msg_id") == msg_id and m["content"]["execution_state"] == "idle")
        return [m for m in self.messages if m["parent_header"].get("msg_id") == msg_id]

    def model(self, name: str) -> str:
        return next(i for i, state in reversed(self.states.items()) if state["_model_name"] == name and i not in self.closed)

    def picture(self, other_than: bytes) -> bytes:
        model = self.model("AnyModel")
        while self.states[model]["png"] == other_than:
            self.take()
        return self.states[model]["png"]


@pytest.fixture
def front(own_kernel: Kernel) -> Iterator[Front]:
    front = Front(own_kernel)
    own = front.idle(own_kernel.client.execute(EXPLORE))
    still, shown = (m["content"]["data"] for m in own if m["msg_type"] == "display_data")
    assert (sorted(still), sorted(shown)) == (["image/png", "text/html", "text/plain"], [VIEW, "text/plain"])
    assert front.states[shown[VIEW]["model_id"]]["_model_name"] == "HBoxModel"
    # The models are there before what shows them.
    kinds = [m["msg_type"] for m in own]
    assert kinds.index("display_data") > max(i for i, kind in enumerate(kinds) if kind == "comm_open")
    yield front


def classes(base: type) -> Iterator[type]:
    for cls in base.__subclasses__():
        yield cls
        yield from classes(cls)


def test_models_are_those_of_ipywidgets(front: Front) -> None:
    """Names, versions and entries of the states are what the packages on the page have."""
    own = (cls for cls in classes(ipywidgets.Widget) if cls.__module__.startswith("ipywidgets.") and cls is not ipywidgets.interactive)
    known = {cls._model_name.default_value: cls for cls in own}
    known["AnyModel"] = type("Any", (anywidget.AnyWidget,), {"_esm": "export default {}"})
    for state in front.states.values():
        cls = known[state["_model_name"]]
        reference = cls().get_state()
        for name in ("_model_module", "_model_module_version", "_view_module", "_view_module_version", "_view_name"):
            assert state[name] == reference[name], (state["_model_name"], name)
        ours = {"png", "alt", "note", "busy", "width", "height", "code", "still", "_css"} if state["_model_name"] == "AnyModel" else set()
        assert set(state) - ours <= set(reference), state["_model_name"]
    assert {s["_model_name"] for s in front.states.values()} >= {"AnyModel", "HBoxModel", "VBoxModel", "IntSliderModel", "LayoutModel"}


def test_turn(front: Front) -> None:
    slider, first = front.model("IntSliderModel"), front.states[front.model("AnyModel")]["png"]
    assert first.startswith(b"\x89PNG")
    request = front.update(slider, value=5)
    answers = front.idle(request)
    kinds = [m["msg_type"] for m in answers]
    assert kinds[0] == "status" and kinds[-1] == "status" and kinds[1] == "comm_msg"
    assert answers[1]["content"] == {"comm_id": slider, "data": {"method": "echo_update", "state": {"value": 5}, "buffer_paths": []}}
    fifth = front.picture(first)
    front.update(slider, value=0)
    assert front.picture(fifth) == first

    # A drag: the last value is what the picture shows in the end, long before a hundred runs are over.
    for value in range(1, 101):
        front.update(slider, value=value % 60)
    before = len(front.messages)
    front.idle(front.update(slider, value=5))
    while front.states[front.model("AnyModel")]["png"] != fifth:
        front.take()
    pictures = [m for m in front.messages[before:] if m["msg_type"] == "comm_msg" and "png" in str(m["content"]["data"].get("buffer_paths"))]
    assert 1 <= len(pictures) < 100


def test_while_a_cell_runs(front: Front) -> None:
    first = front.states[front.model("AnyModel")]["png"]
    cell = front.client.execute('%%\nfmt.Println("begun")\ntime.Sleep(20 * time.Second)')
    front.until(lambda m: m["msg_type"] == "stream" and "begun" in m["content"]["text"])
    began = time.monotonic()
    front.update(front.model("IntSliderModel"), value=-3)
    front.picture(first)
    assert time.monotonic() - began < 10
    front.kernel.manager.interrupt_kernel()
    front.idle(cell)
    assert any(m["msg_type"] == "error" for m in front.messages)


def test_reload(front: Front) -> None:
    slider, first = front.model("IntSliderModel"), front.states[front.model("AnyModel")]["png"]
    front.update(slider, value=7)
    now = front.picture(first)
    front.send("comm_open", {"comm_id": "page", "target_name": "jupyter.widget.control", "data": {}})
    request = front.send("comm_msg", {"comm_id": "page", "data": {"method": "request_states"}})
    answer = next(m for m in front.idle(request) if m["msg_type"] == "comm_msg")
    data = answer["content"]["data"]
    assert answer["content"]["comm_id"] == "page" and data["method"] == "update_states"
    assert set(data["states"]) == set(front.states)
    assert data["states"][slider]["model_name"] == "IntSliderModel" and data["states"][slider]["state"]["value"] == 7
    assert data["buffer_paths"] == [[front.model("AnyModel"), "state", "png"]]
    assert [bytes(b) for b in answer["buffers"]] == [now]

    message = front.client.session.msg("comm_info_request", {"target_name": "jupyter.widget"})
    front.client.shell_channel.send(message)
    while (reply := front.client.get_shell_msg(timeout=TIMEOUT))["msg_type"] != "comm_info_reply":
        pass
    assert set(reply["content"]["comms"]) == set(front.states)


def test_close_and_run_again(front: Front) -> None:
    """A page that closes one model closes all. The cell, run again, makes new ones."""
    before = set(front.states)
    front.idle(front.send("comm_close", {"comm_id": front.model("IntSliderModel"), "data": {}}))
    assert len(front.closed) == len(before) - 1
    front.idle(front.client.execute(EXPLORE))
    assert len(front.states) == 2 * len(before)
    first = front.states[front.model("AnyModel")]["png"]
    front.update(front.model("IntSliderModel"), value=1)
    front.picture(first)


def test_program_gets_the_picture_alone(own_kernel: Kernel) -> None:
    """nbconvert and the like answer no input requests. What they write shows without a network."""
    result = own_kernel.run(EXPLORE, allow_stdin=False)
    assert [sorted(d) for d in result.displays] == [["image/png", "text/plain"]]
    assert not [o for o in result.outputs if o["msg_type"].startswith("comm")]


def test_refusals(own_kernel: Kernel) -> None:
    result = own_kernel.run(LAYER + 'attn.Explore(q, attn.Dial("ofset", -64, 64))')
    assert result.status == "error"
    assert 'Explore: no parameter is called "ofset": did you mean "offset"?' in result.reply["evalue"]
    result = own_kernel.run(LAYER + 'q.Heatmap(attn.Dial("offset", -64, 64))')
    assert result.status == "error"
    assert "the control offset belongs to Explore" in result.reply["evalue"]


HEARS = ATTN + """%%
for gain := range attn.Slider("gain", 0, 10, 3).Values() {
	fmt.Println("gain", gain)
	if gain == 9 { break }
}
for mask := range attn.Menu("mask", "causal", "full").Values() {
	fmt.Println("mask", mask)
}
"""


def printed(text: str) -> Any:
    return lambda m: m["msg_type"] == "stream" and text in m["content"]["text"]


@pytest.fixture
def page(own_kernel: Kernel) -> Front:
    return Front(own_kernel)


def test_a_cell_hears_its_own_controls(page: Front) -> None:
    cell = page.client.execute(HEARS)
    page.until(printed("gain 3"))
    slider = page.model("IntSliderModel")
    assert page.states[slider] | {"value": 3, "min": 0, "max": 10, "description": "gain"} == page.states[slider]
    page.update(slider, value=5)
    page.until(printed("gain 5"))
    page.update(slider, value=9)
    page.until(printed("gain 9"))
    page.until(printed("mask causal"))
    menu = page.model("DropdownModel")
    page.update(menu, index=1)
    page.until(printed("mask full"))
    shown = [m["content"]["data"] for m in page.messages if m["msg_type"] == "display_data"]
    assert [sorted(d) for d in shown] == [[VIEW, "text/plain"]] * 2
    assert {page.states[d[VIEW]["model_id"]]["_model_name"] for d in shown} == {"HBoxModel"}

    # A page that closes the control ends the loop, and with it the cell.
    own = page.idle(page.send("comm_close", {"comm_id": menu, "data": {}}))
    assert menu not in page.closed and own
    page.idle(cell)
    assert page.client.get_shell_msg(timeout=TIMEOUT)["content"]["status"] == "ok"

    # The other one stays, says that its cell has ended, and no longer turns.
    while not page.states[slider].get("disabled"):
        page.take()
    notes = [s["value"] for s in page.states.values() if s["_model_name"] == "LabelModel"]
    while "Its cell has ended: run it again." not in notes:
        page.take()
        notes = [s["value"] for s in page.states.values() if s["_model_name"] == "LabelModel"]


def test_interrupt_ends_a_cell_that_waits_for_its_control(page: Front) -> None:
    cell = page.client.execute(HEARS)
    page.until(printed("gain 3"))
    began = time.monotonic()
    page.kernel.manager.interrupt_kernel()
    page.idle(cell)
    assert time.monotonic() - began < 5
    assert page.client.get_shell_msg(timeout=TIMEOUT)["content"]["ename"] == "Interrupted"
    slider = page.model("IntSliderModel")
    while not page.states[slider].get("disabled"):
        page.take()


def test_a_program_gets_the_first_values(own_kernel: Kernel) -> None:
    result = own_kernel.run(HEARS, allow_stdin=False)
    assert (result.status, result.text(), result.displays) == ("ok", "gain 3\nmask causal\n", [])
    result = own_kernel.run(ATTN + '%%\nattn.Slider("gain", 0, 10, 30)', allow_stdin=False)
    assert result.reply["evalue"].endswith("gain: 30 is not between 0 and 10"), result
    assert own_kernel.run(ATTN + '%%\nattn.Menu("mask")').status == "error"

// The picture of an exploration: a PNG that the kernel replaces, and below it what the newest change came to nothing by.
// Below that, the Go that makes what is shown, to be copied.
// State: png (bytes), width and height (CSS pixels), alt, note (empty: none), busy, code (empty: none), still: what names the PNG on the
// page that shows where this does not (still.js).
function render({ model, el }) {
  const figure = document.createElement("figure");
  figure.className = "attnb-picture";
  let image = document.createElement("img");
  const note = document.createElement("figcaption");
  note.setAttribute("role", "status");
  const line = document.createElement("div");
  line.className = "attnb-code";
  const code = document.createElement("code");
  const copy = document.createElement("button");
  copy.textContent = "Copy as Go";
  copy.onclick = async () => {
    try {
      await navigator.clipboard.writeText(code.textContent);
      copy.textContent = "Copied";
    } catch { // no permission: the line is selected instead
      getSelection().selectAllChildren(code);
      copy.textContent = "Selected";
    }
    setTimeout(() => { copy.textContent = "Copy as Go"; }, 1500);
  };
  line.append(copy, code);
  figure.append(image, note, line);
  el.replaceChildren(figure);

  let shown = null; // URL of what the image shows
  let newest = 0;
  async function draw() {
    const mine = ++newest;
    const url = URL.createObjectURL(new Blob([model.get("png")], { type: "image/png" }));
    // Decoded before it is shown, so that the one before stays until then. It takes that one's place as a whole: of an image
    // that changes while its cell is off the screen, which JupyterLab does not lay out, Chromium may keep the old size.
    const next = new Image();
    next.src = url;
    try {
      await next.decode();
    } catch {
      URL.revokeObjectURL(url);
      return;
    }
    if (mine !== newest) {
      URL.revokeObjectURL(url);
      return;
    }
    next.width = model.get("width");
    next.height = model.get("height");
    next.alt = image.alt;
    image.replaceWith(next);
    image = next;
    if (shown) URL.revokeObjectURL(shown);
    shown = url;
  }
  const describe = () => { image.alt = model.get("alt"); };
  const tell = () => {
    note.textContent = model.get("note");
    figure.classList.toggle("attnb-stale", model.get("note") !== "");
  };
  const say = () => {
    code.textContent = model.get("code");
    line.hidden = model.get("code") === "";
  };
  const wait = () => { figure.classList.toggle("attnb-busy", model.get("busy")); };

  model.on("change:png", draw);
  model.on("change:alt", describe);
  model.on("change:note", tell);
  model.on("change:busy", wait);
  model.on("change:code", say);
  draw();
  describe();
  tell();
  say();
  wait();

  const views = (window["attnb-stills"] ??= new Map()), id = model.get("still");
  const count = by => {
    views.set(id, (views.get(id) || 0) + by);
    for (const still of document.querySelectorAll(`[data-attnb-still="${CSS.escape(id)}"]`)) still.style.display = views.get(id) ? "none" : "";
  };
  count(1);
  return () => {
    count(-1);
    newest++;
    if (shown) URL.revokeObjectURL(shown);
  };
}

export default { render };

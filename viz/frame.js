// The page's side of a zooming picture: its elements, the pointer, the keyboard, the tooltip. act is what attnbZoom does.

const attnbHint = "ctrl + wheel zooms, and the wheel alone after a click; drag moves; double click shows all. Keys: + − arrows 0";

function attnbFrame(host, view, act) {
  const element = attnbElement, theme = attnbTheme(host, view.colours), style = getComputedStyle(host);
  const font = style.fontFamily, tokens = view.rowLabels || view.colLabels;
  const tall = view.rows[1] - view.rows[0], broad = view.cols[1] - view.cols[0];
  const left = view.rowLabels ? 132 : 62, below = view.colLabels ? 96 : 40, right = 108, top = 22;
  const room = Math.max(240, Math.min(host.clientWidth || 720, 720) - left - right);
  const w = Math.min(room, Math.max(160, tall > broad ? Math.round((512 * broad) / tall) : 512)), h = Math.max(160, Math.min(512, Math.round((w * tall) / broad)));
  const width = left + w + right, height = top + h + below;
  const plot = { x: left, y: top, w, h, foot: height - 6 }, bar = { x: left + w + 18, y: top + 14, w: 14, h: Math.max(60, Math.min(h - 14, 320)) };

  const frame = element("div", `position:relative;width:${width}px;font-size:12px;line-height:1.4`);
  const title = element("div", "font-size:15.5px;font-weight:600;overflow:hidden;text-overflow:ellipsis;white-space:nowrap", view.title);
  const detail = element("div", "font-size:11.5px;opacity:.75;min-height:1.4em");
  const tools = element("div", "display:flex;flex-wrap:wrap;gap:4px 6px;align-items:center;margin:6px 0 0");
  const button = (text, label, run) => {
    const b = element("button", "font:inherit;color:inherit;background:transparent;border:1px solid #8888;border-radius:4px;padding:1px 8px;cursor:pointer", text);
    b.type = "button";
    b.title = label;
    b.setAttribute("aria-label", label);
    b.addEventListener("click", run);
    tools.append(b);
    return b;
  };
  if (view.heads.length > 1) {
    const menu = element("select", `font:inherit;color:inherit;background:${theme.dark ? "#262a30" : "#fff"};border:1px solid #8888;border-radius:4px`);
    view.heads.forEach((head, i) => menu.append(Object.assign(element("option", "", head.name || `matrix ${i}`), { value: i })));
    menu.setAttribute("aria-label", "which matrix shows");
    menu.addEventListener("change", () => act.head(Number(menu.value)));
    tools.append(menu);
  }
  button("+", "zoom in", () => act.zoom(0.5));
  button("−", "zoom out", () => act.zoom(2));
  button("all", "show all", act.all);
  const fit = Object.assign(element("input"), { type: "checkbox" }), fits = element("label", "display:inline-flex;gap:4px;align-items:center;margin:0 4px;cursor:pointer");
  fits.append(fit, "colours fit the view");
  fit.addEventListener("change", () => act.fit(fit.checked));
  tools.append(fits);
  if (view.call) button("Copy as Go", "copy the Go line that shows this part", copy);

  async function copy() {
    const text = act.line();
    let copied = true;
    try {
      await navigator.clipboard.writeText(text);
    } catch { // no permission, or no secure page
      const area = Object.assign(element("textarea", "position:fixed;opacity:0"), { value: text });
      frame.append(area);
      area.select();
      copied = document.execCommand("copy");
      area.remove();
    }
    act.say(copied ? `copied: ${text}` : text);
  }

  const canvas = element("canvas", `display:block;width:${width}px;height:${height}px`);
  const n = Math.min(window.devicePixelRatio || 1, 2);
  canvas.width = width * n;
  canvas.height = height * n;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", host.firstElementChild.alt);
  // Over the cells alone: the page's own wheel and clicks work everywhere else. The attribute keeps JupyterLab's keys away.
  const pad = element("div", `position:absolute;left:${left}px;top:${top}px;width:${w}px;height:${h}px;cursor:crosshair;touch-action:pan-y;outline-offset:2px`);
  pad.tabIndex = 0;
  pad.dataset.lmSuppressShortcuts = "true";
  pad.setAttribute("role", "application");
  pad.setAttribute("aria-label", `${view.title}: ${attnbHint}`);
  const over = element("div", "position:absolute;inset:auto 0 0 0;padding:5px 8px;background:#000a;color:#fff;font-size:12px;pointer-events:none;opacity:0;transition:opacity .2s", "ctrl + wheel zooms, or click first");
  pad.append(over);
  const tipBox = element("div", `position:absolute;display:none;pointer-events:none;z-index:10;padding:6px 10px;border:1px solid #8888;border-radius:4px;max-width:340px;overflow-wrap:anywhere;` +
    `background:${theme.dark ? "#262a30" : "#fff"};color:${theme.dark ? "#e8e8e8" : "#1e2228"};font-size:12px;line-height:1.5;box-shadow:0 2px 8px #0004`);
  tipBox.className = "attnb-tip";
  const stage = element("div", "position:relative");
  stage.append(canvas, pad, tipBox);
  const status = element("div", "font-size:11.5px;min-height:1.4em;margin-top:2px;overflow-wrap:anywhere");
  status.setAttribute("role", "status");
  const legend = attnbLegend(attnbClasses.map(name => ({ class: name, text: "" })), theme);
  frame.append(title, detail, tools, stage, legend, status, element("div", "font-size:11px;opacity:.6", attnbHint));
  host.append(frame);

  // The pointer, as a place of 0 to 1 along the plot.
  const place = e => {
    const box = pad.getBoundingClientRect();
    return { x: Math.min(Math.max((e.clientX - box.left) / box.width, 0), 1 - 1e-9), y: Math.min(Math.max((e.clientY - box.top) / box.height, 0), 1 - 1e-9) };
  };
  let held = null, engaged = false;
  pad.addEventListener("pointerdown", e => {
    if (e.button !== 0) return;
    held = { x: e.clientX, y: e.clientY, view: act.now() };
    engaged = true;
    pad.setPointerCapture(e.pointerId);
    setTimeout(() => pad.focus({ preventScroll: true })); // after the page has moved the focus to the cell
    e.stopPropagation();
  });
  pad.addEventListener("pointermove", e => {
    if (held) {
      pad.style.cursor = "grabbing";
      act.drag(held.view, e.clientX - held.x, e.clientY - held.y);
    }
    act.point(place(e));
  });
  const drop = () => {
    held = null;
    pad.style.cursor = "crosshair";
  };
  pad.addEventListener("pointerup", drop);
  pad.addEventListener("pointercancel", drop);
  pad.addEventListener("pointerleave", () => {
    engaged = engaged && document.activeElement === pad;
    act.point(null);
  });
  pad.addEventListener("blur", () => (engaged = false));
  pad.addEventListener("dblclick", act.all);
  let fades = 0;
  pad.addEventListener("wheel", e => {
    if (!(e.ctrlKey || e.metaKey || engaged)) {
      over.style.opacity = 1;
      clearTimeout(fades);
      fades = setTimeout(() => (over.style.opacity = 0), 900);
      return;
    }
    e.preventDefault();
    e.stopPropagation();
    const lines = e.deltaMode === 1 ? 16 : 1;
    act.wheel(Math.min(Math.max(e.deltaY * lines * (e.ctrlKey && Math.abs(e.deltaY) < 20 ? 6 : 2), -600), 600), place(e));
  }, { passive: false });
  const keys = { "+": () => act.zoom(0.5), "=": () => act.zoom(0.5), "-": () => act.zoom(2), "_": () => act.zoom(2), "0": act.all, Home: act.all,
    ArrowLeft: () => act.move(-0.2, 0), ArrowRight: () => act.move(0.2, 0), ArrowUp: () => act.move(0, -0.2), ArrowDown: () => act.move(0, 0.2), Escape: () => pad.blur() };
  pad.addEventListener("keydown", e => {
    if (e.ctrlKey || e.metaKey || e.altKey || !keys[e.key]) return;
    keys[e.key]();
    e.preventDefault();
    e.stopPropagation();
  });

  // What the pointer is on.
  function tip(cell) {
    tipBox.style.display = cell ? "block" : "none";
    if (!cell) return;
    tipBox.replaceChildren();
    const say = (name, text, strong) => {
      const line = element("div");
      line.append(name + " ", element("bdi", strong ? "font-weight:600" : "", text));
      tipBox.append(line);
    };
    const range = ([from, to], labels) => {
      const name = to - from === 1 ? String(from) : `${from}–${to - 1}`;
      if (!labels || labels[from] === undefined) return name;
      return to - from === 1 ? `${name} “${labels[from]}”` : `${name} “${labels[from]}” to “${labels[to - 1]}”`;
    };
    say(view.rowAxis, range(cell.rows, view.rowLabels));
    say(view.colAxis, range(cell.cols, view.colLabels));
    const single = cell.rows[1] - cell.rows[0] === 1 && cell.cols[1] - cell.cols[0] === 1;
    const value = v => (Number.isFinite(v) ? (cell.exact ? attnbExact(v) : "≈ " + attnbShort(v)) : v !== v ? "NaN" : v > 0 ? "+Inf" : "-Inf");
    if (cell.masked) say(view.quantity, "masked", true);
    else if (single && cell.score !== undefined) {
      say("score", value(cell.score), view.quantity === "score");
      say("probability", value(cell.probability), view.quantity === "probability");
    } else say(view.quantity, value(cell.value), true);
    if (!single) say("", `${view.byWords} of ${cell.rows[1] - cell.rows[0]} × ${cell.cols[1] - cell.cols[0]}`);
    const rect = { x: plot.x, y: plot.y };
    const p = tip.last || { x: 0, y: 0 };
    const px = rect.x + p.x * w, py = rect.y + p.y * h;
    tipBox.style.left = `${px + 16 + tipBox.offsetWidth > width ? Math.max(0, px - 16 - tipBox.offsetWidth) : px + 16}px`;
    tipBox.style.top = `${py + 16 + tipBox.offsetHeight > height ? Math.max(0, py - 12 - tipBox.offsetHeight) : py + 16}px`;
  }
  pad.addEventListener("pointermove", e => (tip.last = place(e)), true);

  const g = canvas.getContext("2d");
  return { frame, g, plot, bar, width, height, font, theme, hatch: g.createPattern(attnbHatch(theme.masked), "repeat"), status, detail, legend: legend.entries, fit, tip };
}

// The line below the title: what part shows, and what a cell is.
function attnbDetail(view, shown, sheet) {
  const span = (from, to) => `${Math.floor(from)}–${Math.ceil(to) - 1}`;
  const parts = [`${view.size[0]} × ${view.size[1]}`];
  if (shown.r0 > 0 || shown.r1 < view.size[0] || shown.c0 > 0 || shown.c1 < view.size[1]) {
    parts.push(`${view.rowAxis} ${span(shown.r0, shown.r1)}, ${view.colAxis} ${span(shown.c0, shown.c1)}`);
  }
  if (!sheet) return parts.join(" • ");
  const each = (from, to, n) => ((to - from) % n ? "up to " : "") + Math.ceil((to - from) / n);
  if (sheet.r1 - sheet.r0 === sheet.h && sheet.c1 - sheet.c0 === sheet.w) parts.push("single cells");
  else parts.push(`each cell is the ${view.byWords} of ${each(sheet.r0, sheet.r1, sheet.h)} × ${each(sheet.c0, sheet.c1, sheet.w)}`);
  return parts.join(" • ");
}

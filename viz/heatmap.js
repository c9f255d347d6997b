// Draws one heatmap into host. host holds the PNG of the same picture; it stays when anything here fails.
//
// view: what html.go sends: the option that go-echarts made, values as base64 f32, scale, labels, places of the text.
// packed: the ECharts script, gzipped, in base64. Everything that is text goes through textContent or a canvas: labels run nothing.
function attnbHeatmap(host, view, packed) {
  const png = host.firstElementChild;
  const floats = b64 => new Float32Array(attnbBytes(b64).buffer);
  const values = view.values.map(floats);
  const masks = view.masks.map(b64 => (b64 ? attnbBytes(b64) : null));
  const absent = view.absent.map(b64 => (b64 ? attnbBytes(b64) : null));
  const { rows, cols } = view;

  // One copy of the library a page, found again by later outputs.
  function library() {
    const name = view.library, loading = name + " loading";
    if (window[name]) return Promise.resolve(window[name]);
    window[loading] ??= (async () => {
      const script = document.createElement("script");
      script.textContent = new TextDecoder().decode(await attnbUnpack(attnbBytes(packed), "gzip"));
      document.head.append(script);
      script.remove();
      if (!window[name]) throw new Error("this page runs no script of ours");
      return window[name];
    })().finally(() => delete window[loading]);
    return window[loading];
  }

  const classOf = (m, k) => {
    if (absent[m] && (absent[m][k >> 3] >> (k & 7)) & 1) return "absent";
    if (masks[m] && (masks[m][k >> 3] >> (k & 7)) & 1) return "masked";
    const v = values[m][k];
    if (view.scale.log && v === 0) return "zero";
    return v !== v ? "NaN" : v === Infinity ? "+Inf" : v === -Infinity ? "-Inf" : "";
  };

  const place = v => attnbPlace(view.scale, v);
  // The map is a list of colours: a cell takes one of them, as in the PNG, and none between two.
  const steps = view.lightInk.length;
  const step = v => Math.min(Math.floor(place(v) * steps), steps - 1);

  function option(colours) {
    const o = structuredClone(view.option);
    const pattern = { image: attnbHatch(colours.masked), repeat: "repeat" };
    const fill = c => (c === "masked" ? pattern : colours[c]);
    const item = (m, k) => {
      const col = k % cols, row = (k - col) / cols, c = classOf(m, k);
      const cell = c
        ? { value: [col, row, 0], visualMap: false, itemStyle: { color: fill(c) } }
        : { value: [col, row, step(values[m][k]) / (steps - 1)] };
      const text = view.numbers && view.numbers[m][k];
      if (text) {
        const light = c ? c !== "NaN" && c !== "zero" : view.lightInk[step(values[m][k])];
        cell.label = { show: true, formatter: text, color: light ? "#fff" : "#0c0d10", fontSize: view.numberSize };
      }
      return cell;
    };
    o.series.forEach((s, i) => {
      if (i < values.length) {
        s.data = Array.from(values[i], (_, k) => item(i, k));
        return;
      }
      const m = view.marks[i - values.length]; // the outline of a marked cell, over the others
      const cell = item(m.matrix, m.row * cols + m.col);
      const ring = { borderColor: "#000", borderWidth: 2.5, shadowBlur: 2, shadowColor: "#fff" };
      s.data = [{ ...cell, itemStyle: { ...cell.itemStyle, ...ring } }];
    });
    const font = getComputedStyle(host).fontFamily;
    o.textStyle = { color: colours.ink, fontFamily: font };
    const dress = room => axis => {
      axis.nameTextStyle = { color: colours.ink, fontSize: 12 };
      axis.axisLabel = { ...axis.axisLabel, color: colours.ink, fontSize: fitting(axis.data, room, font), interval: stride(axis) };
      axis.axisTick = { ...axis.axisTick, interval: stride(axis), lineStyle: { color: colours.ink, opacity: 0.5 } };
      axis.axisLine = { ...axis.axisLine, lineStyle: { color: colours.ink, opacity: 0.5 } };
    };
    o.xAxis.forEach(dress(view.colRoom));
    o.yAxis.forEach(dress(view.rowRoom));
    Object.assign(o.tooltip, {
      formatter: tip,
      backgroundColor: colours.dark ? "#262a30" : "#fff",
      borderColor: "#8888",
      padding: [6, 10],
      textStyle: { color: colours.dark ? "#e8e8e8" : "#1e2228", fontSize: 12, fontFamily: font },
    });
    return o;
  }

  // The size at which the labels of an axis fit the room that the layout left for them: fonts differ from page to page.
  function fitting(labels, room, font) {
    const g = document.createElement("canvas").getContext("2d");
    g.font = `11px ${font}`;
    const longest = Math.max(...labels.map(s => g.measureText(s).width));
    return Math.max(8, Math.min(11, (11 * room) / longest));
  }

  // Labels stand as in the PNG until the view is zoomed; then ECharts chooses.
  let zoomed = false;
  const stride = axis => (zoomed ? "auto" : (axis.inverse ? view.rowStride : view.colStride) - 1);
  function zoom(params) {
    const now = (params.batch || [params]).some(z => z.start > 0 || z.end < 100);
    if (zoomed === now) return;
    zoomed = now;
    const labels = axes => axes.map(a => ({ axisLabel: { interval: stride(a) }, axisTick: { interval: stride(a) } }));
    chart.setOption({ xAxis: labels(view.option.xAxis), yAxis: labels(view.option.yAxis) });
  }

  const element = attnbElement;

  function tip(p) {
    const mark = view.marks[p.seriesIndex - values.length];
    const m = mark ? mark.matrix : p.seriesIndex;
    const k = mark ? mark.row * cols + mark.col : p.dataIndex;
    const col = k % cols, row = (k - col) / cols, c = classOf(m, k);
    const box = element("div", "line-height:1.5;text-align:left");
    const say = (name, text, strong) => {
      const line = element("div");
      line.append(name + " ", element("bdi", strong ? "font-weight:600" : "", text));
      box.append(line);
    };
    const cell = (axis, i, labels, names) => {
      const name = names ? names[i] : String(i);
      say(axis, labels ? `${name} “${labels[i]}”` : name);
    };
    if (values.length > 1) say("", view.names[m] || `matrix ${m}`, true);
    cell(view.rowAxis, row, view.rowLabels, view.rowNames);
    cell(view.colAxis, col, view.colLabels, view.colNames);
    say(view.quantity, c || attnbExact(values[m][k]), true);
    for (const other of view.marks) {
      if (other.matrix === m && other.row === row && other.col === col && other.label) say("", other.label);
    }
    return box;
  }

  // What ECharts does not draw: title, names, the colour bar's ticks, the legend.
  function text(frame, colours) {
    const at = (x, y, css, s) => frame.append(element("div", `position:absolute;left:${x}px;top:${y}px;white-space:nowrap;${css}`, s));
    for (const t of view.texts) at(t.x, t.y, t.css, t.text);
    for (const t of view.ticks) {
      at(t.x - 4, t.y, `width:4px;border-top:1px solid;opacity:${t.strong ? 1 : 0.5}`, "");
      at(t.x + 4, t.y, `transform:translateY(-50%);font-size:11px;${t.strong ? "font-weight:600" : ""}`, t.text);
    }
    frame.append(attnbLegend(view.legend, colours));
  }

  let chart = null, frame = null;
  function undraw() {
    if (chart) chart.dispose();
    if (frame) frame.remove();
    chart = frame = null;
    png.style.display = "";
  }

  function draw(echarts) {
    undraw();
    const colours = attnbTheme(host, view.colours);
    zoomed = false;
    frame = element("div", `position:relative;width:${view.width}px;padding:${view.legendTop}px 0 8px;line-height:1.35;font-size:12px`);
    frame.setAttribute("role", "img");
    frame.setAttribute("aria-label", png.alt);
    const canvas = element("div", "position:absolute;left:0;top:0");
    frame.append(canvas);
    text(frame, colours);
    host.append(frame);
    png.style.display = "none";
    chart = echarts.init(canvas, null, { width: view.width, height: view.legendTop });
    chart.setOption(option(colours));
    // the same cell in every panel
    const all = params => values.map((_, i) => i).filter(i => i !== params.seriesIndex)
      .map(seriesIndex => ({ seriesIndex, dataIndex: params.dataIndex }));
    const lead = params => params.seriesIndex < values.length && values.length > 1;
    chart.on("mouseover", p => lead(p) && chart.dispatchAction({ type: "highlight", batch: all(p) }));
    chart.on("mouseout", p => lead(p) && chart.dispatchAction({ type: "downplay", batch: all(p) }));
    chart.on("datazoom", zoom);
    chart.getZr().on("dblclick", () => chart.dispatchAction({ type: "dataZoom", batch: [0, 1].map(i => ({ dataZoomIndex: i, start: 0, end: 100 })) }));
  }

  library().then(echarts => {
    attnbWatch(host, () => draw(echarts), undraw);
  }).catch(err => {
    undraw();
    host.append(element("div", "font-size:11px;opacity:.7", `The picture is not interactive here: ${err.message || err}`));
  });
}

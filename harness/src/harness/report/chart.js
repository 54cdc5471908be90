// Draws each chart of the page from the JSON value inside it, with uPlot: a legend that turns series on and off, values
// where the pointer is, and a zoom by dragging (a double click ends it). Points that are not to be quoted are hollow.
(() => {
  "use strict";

  const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3], [5, 2], [1, 5]];
  const SHAPES = ["●", "■", "▲", "◆"];
  const FONT = "12px system-ui, sans-serif";
  const NARROW = 520;
  const LEAST_LABEL_PX = 34;
  const FEW = 14;

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

  const digits = (value) => {
    const size = Math.abs(value);
    if (size === 0 || size >= 100) return Math.round(value).toLocaleString("en");
    return String(parseFloat(value.toPrecision(3)));
  };

  const short = (value) => {
    if (value === null || value === undefined) return "";
    for (const [size, name] of [[1e9, "G"], [1e6, "M"], [1e4, "K"]]) {
      if (Math.abs(value) >= size) return digits(value / (name === "K" ? 1e3 : size)) + name;
    }
    return digits(value);
  };

  const percent = (nines) => {
    const value = 100 * (1 - 10 ** -nines);
    return `${parseFloat(value.toFixed(Math.max(0, Math.ceil(nines) - 1)))} %`;
  };

  // 1, 2 and 5 of each decade, or each power of ten where those are too many.
  const logSplits = (low, high) => {
    const found = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
      for (const digit of [1, 2, 5]) {
        const value = digit * 10 ** power;
        if (value >= low * 0.999 && value <= high * 1.001) found.push(value);
      }
    }
    return found.length <= 8 ? found : found.filter((value) => /^1(0*|e.*)$/.test(String(value)) || /^0?\.0*1$/.test(String(value)));
  };

  const look = (series) => {
    if (series.look === "ceiling" || series.look === "level") return { stroke: colour("ceiling"), dash: [6, 4], width: 1.5 };
    if (series.look === "published") return { stroke: colour("published"), dash: [2, 4], width: 1.5 };
    if (series.look === "predicted") return { stroke: colour("ink"), dash: [], width: 1.5 };
    return { stroke: colour(series.colour), dash: DASHES[series.dash % DASHES.length], width: 1.8 };
  };

  const shape = (context, kind, x, y, size) => {
    context.beginPath();
    if (kind === "cross") {
      context.moveTo(x - size, y - size); context.lineTo(x + size, y + size);
      context.moveTo(x - size, y + size); context.lineTo(x + size, y - size);
    } else if (kind === 1) {
      context.rect(x - size * 0.9, y - size * 0.9, size * 1.8, size * 1.8);
    } else if (kind === 2) {
      context.moveTo(x, y - size * 1.2); context.lineTo(x + size * 1.1, y + size * 0.8);
      context.lineTo(x - size * 1.1, y + size * 0.8); context.closePath();
    } else if (kind === 3) {
      context.moveTo(x, y - size * 1.25); context.lineTo(x + size * 1.25, y);
      context.lineTo(x, y + size * 1.25); context.lineTo(x - size * 1.25, y); context.closePath();
    } else {
      context.arc(x, y, size, 0, 2 * Math.PI);
    }
  };

  const drawMarks = (plot, chart) => {
    const { ctx: context, bbox } = plot;
    const dots = devicePixelRatio;
    context.save();
    context.beginPath();
    context.rect(bbox.left - 8 * dots, bbox.top - 8 * dots, bbox.width + 16 * dots, bbox.height + 16 * dots);
    context.clip();
    chart.series.forEach((series, number) => {
      if (!plot.series[number + 1].show || series.look === "level") return;
      const { stroke } = look(series);
      const low = plot.scales.x.min, high = plot.scales.x.max;
      context.strokeStyle = stroke;
      context.lineWidth = 1.5 * dots;
      context.setLineDash([]);
      series.marks.forEach(([x, y, least, most, doubtful], position) => {
        if (x < low || x > high) return;
        const left = plot.valToPos(x, "x", true);
        const last = position === series.marks.length - 1;
        if (y === null || y === undefined) {
          if (!chart.yLog) return;
          context.fillStyle = stroke;
          shape(context, 2, left, bbox.top + bbox.height, 4 * dots);
          context.fill();
          return;
        }
        const top = plot.valToPos(y, "y", true);
        if (least !== undefined && least !== most) {
          context.beginPath();
          context.moveTo(left, plot.valToPos(least, "y", true));
          context.lineTo(left, plot.valToPos(most, "y", true));
          context.stroke();
        }
        if (series.died && last) {
          context.lineWidth = 3 * dots;
          shape(context, "cross", left, top, 6 * dots);
          context.stroke();
          context.lineWidth = 1.5 * dots;
        } else if (series.marked && (series.look === "predicted" || series.look === "published")) {
          shape(context, "cross", left, top, 3.5 * dots);
          context.stroke();
        } else if (series.marked && series.look === "ours") {
          shape(context, series.dash % 4, left, top, 4 * dots);
          context.fillStyle = doubtful ? colour("card") : stroke;
          context.fill();
          context.stroke();
        }
      });
    });
    context.restore();
  };

  const drawSpans = (plot, chart) => {
    if (!chart.spans || !chart.spans.length) return;
    const { ctx: context, bbox } = plot;
    context.save();
    context.fillStyle = colour("span");
    for (const [began, ended] of chart.spans) {
      const left = Math.max(bbox.left, plot.valToPos(began, "x", true));
      const right = Math.min(bbox.left + bbox.width, plot.valToPos(ended, "x", true));
      if (right > left) context.fillRect(left, bbox.top, right - left, bbox.height);
    }
    context.restore();
  };

  // Lines across the chart, each with what begins there, written as wide as there is room until the next one.
  const drawMoments = (plot, chart) => {
    if (!chart.moments || !chart.moments.length) return;
    const { ctx: context, bbox } = plot;
    const dots = devicePixelRatio;
    const right = bbox.left + bbox.width;
    const lefts = chart.moments.map(([at]) => plot.valToPos(at, "x", true));
    context.save();
    context.font = `${11 * dots}px system-ui, sans-serif`;
    context.textBaseline = "top";
    context.textAlign = "left";
    context.lineWidth = dots;
    context.setLineDash([2 * dots, 3 * dots]);
    context.strokeStyle = context.fillStyle = colour("ink");
    chart.moments.forEach(([, name], number) => {
      const left = lefts[number];
      if (left < bbox.left - dots || left > right) return;
      context.beginPath();
      context.moveTo(left, bbox.top);
      context.lineTo(left, bbox.top + bbox.height);
      context.stroke();
      const room = Math.min(lefts[number + 1] ?? right, right) - left - 8 * dots;
      wrap(name, room / (5.8 * dots)).split("\n").forEach((line, below) => {
        context.fillText(line, left + 4 * dots, bbox.top + (2 + 13 * below) * dots);
      });
    });
    context.restore();
  };

  // Of each series the nearest point with a value, if it is near the pointer.
  const nearest = (chart, maximum) => (plot, number, hovered, at) => {
    if (number === 0) return hovered;
    const xs = plot.data[0], ys = plot.data[number];
    const has = (index) => index >= 0 && index < xs.length && ys[index] !== null && ys[index] !== undefined;
    for (let away = 0; away < Math.max(2, maximum); away += 1) {
      const found = [hovered - away, hovered + away].filter(has);
      if (found.length) {
        const index = found.reduce((one, other) => (Math.abs(xs[one] - at) <= Math.abs(xs[other] - at) ? one : other));
        return Math.abs(plot.valToPos(xs[index], "x") - plot.cursor.left) < 60 || !chart.categories.length ? index : null;
      }
    }
    return null;
  };

  const ranges = (chart, xs) => ({
    x: (_, low, high) => {
      if (chart.categories.length) return [-0.5, chart.categories.length - 0.5];
      if (chart.xLog) return [low / 1.25, high * 1.25];
      const margin = (high - low || 1) * (xs.length > 40 ? 0.005 : 0.04);
      return [low - margin, high + margin];
    },
    y: (_, low, high) => {
      if (low === null || high === null) return [0, 1];
      const intervals = chart.series.flatMap((series) => (series.marks || []).map((mark) => mark[3] || 0));
      // What is written at moments has the room above.
      const moments = chart.moments && chart.moments.length;
      const above = chart.yLog ? (moments ? 2.5 : 1.4) : (moments ? 1.3 : 1.08);
      if (chart.yLog) return [low / 1.4, above * Math.max(high, Math.min(Math.max(0, ...intervals), 3 * high))];
      const most = Math.max(high, Math.min(Math.max(0, ...intervals), 1.6 * high));
      return [0, most > 0 ? most * above : 1];
    },
  });

  const wrap = (name, letters) => name.split(" ").reduce((lines, word) => {
    const last = lines[lines.length - 1];
    return last && last.length + 1 + word.length <= letters ? [...lines.slice(0, -1), `${last} ${word}`] : [...lines, word];
  }, []).join("\n");

  const xAxis = (chart, few, width) => {
    const apart = (plot, values) => {
      let last = -Infinity;
      const least = chart.categories.length ? 0 : LEAST_LABEL_PX;
      return values.map((value) => {
        const left = plot.valToPos(value, "x");
        if (left - last < least) return null;
        last = left;
        return value;
      });
    };
    const names = chart.categories;
    const axis = {
      stroke: colour("soft"), font: FONT, grid: { show: false }, ticks: { stroke: colour("grid"), size: 4 },
      label: chart.x || undefined, labelFont: FONT, labelSize: 22, size: 30,
    };
    if (names.length) {
      axis.splits = () => names.map((_, number) => number);
      const wrapped = names.map((name) => wrap(name, (width - 70) / names.length / 6.6));
      axis.values = (_, values) => values.map((number) => wrapped[number] ?? "");
      axis.size = 16 + 15 * Math.max(...wrapped.map((name) => name.split("\n").length));
    } else if (chart.percentiles) {
      axis.splits = () => [0, Math.log10(2), 1, 2, 3, 4];
      axis.values = (_, values) => values.map(percent);
    } else if (few) {
      axis.splits = (plot) => apart(plot, few).filter((value) => value !== null);
      axis.values = (_, values) => values.map(short);
    } else if (chart.xLog) {
      axis.splits = (_, __, low, high) => logSplits(low, high);
      axis.values = (_, values) => values.map(short);
    } else {
      axis.values = (_, values) => values.map(short);
      axis.space = 60;
    }
    return axis;
  };

  const options = (chart, data, width, height, few) => {
    const range = ranges(chart, data[0]);
    const grid = { stroke: colour("grid"), width: 1 };
    return {
      width,
      height,
      padding: [10, 12, 0, 0],
      scales: {
        x: { time: false, distr: chart.xLog ? 3 : 1, log: 2, range: range.x },
        y: { distr: chart.yLog ? 3 : 1, log: 10, range: range.y },
      },
      axes: [
        xAxis(chart, few, width),
        {
          stroke: colour("soft"), font: FONT, grid, ticks: { show: false }, size: 50, gap: 6,
          values: (_, values) => values.map(short),
          ...(chart.yLog ? { splits: (_, __, low, high) => logSplits(low, high) } : { space: 34 }),
        },
      ],
      legend: { live: !chart.low, markers: { width: 3 } },
      cursor: { dataIdx: nearest(chart, 60), points: { size: 9 }, drag: { x: true, y: false } },
      hooks: {
        drawClear: [(plot) => drawSpans(plot, chart)],
        draw: [(plot) => drawMoments(plot, chart), (plot) => drawMarks(plot, chart)],
      },
      series: [
        {
          label: chart.categories.length ? "" : chart.x || "x",
          value: (_, value) => {
            if (value === null || value === undefined) return "";
            if (chart.categories.length) return chart.categories[Math.round(value)] ?? "";
            return chart.percentiles ? percent(value) : short(value);
          },
        },
        ...chart.series.map((series) => ({
          label: alike(chart, series) ? `${SHAPES[series.dash % 4]} ${series.name}` : series.name,
          ...look(series),
          points: { show: false },
          spanGaps: false,
          ...(series.joined || series.look === "level" ? {} : { paths: () => null }),
          value: (_, value) => (value === null || value === undefined ? "" : `${short(value)} ${chart.y}`),
        })),
      ],
    };
  };

  // Whether another series has its colour, so that only shapes and dashes tell them apart.
  const alike = (chart, series) => series.look === "ours" && series.marked
    && chart.series.some((other) => other !== series && other.colour === series.colour);

  const draw = (place) => {
    const chart = place.chart;
    chart.categories = chart.categories || [];
    const xs = chart.series.flatMap((series) => (series.marks || []).map((mark) => mark[0]));
    const ends = chart.categories.length ? [-0.5, chart.categories.length - 0.5] : [Math.min(...xs), Math.max(...xs)];
    const tables = chart.series.map((series) =>
      series.look === "level" ? [ends, [series.level, series.level]]
        : [series.marks.map((mark) => mark[0]), series.marks.map((mark) => mark[1])]);
    // The order of x is that of time and levels; several values at one x would be joined by a step.
    const data = uPlot.join(tables, tables.map((table) => table.slice(1).map(() => 1)).map((modes) => [1, ...modes]));
    const own = [...new Set(chart.series.filter((of) => of.look === "ours").flatMap((of) => of.marks.map((mark) => mark[0])))];
    const few = own.length <= FEW && own.every(Number.isInteger) ? own.sort((one, other) => one - other) : null;
    const width = place.clientWidth;
    const height = chart.low ? 150 : width < NARROW ? 240 : 330;
    if (place.plot) place.plot.destroy();
    place.plot = new uPlot(options(chart, data, width, height, few), data, place);
  };

  const shown = (place) => place.clientWidth > 0 && (!place.checkVisibility || place.checkVisibility());

  const drawShown = (within) => {
    for (const place of within.querySelectorAll(".chart")) {
      if (place.plot || !shown(place)) continue;
      if (!place.chart) {
        const text = place.querySelector("script");
        place.chart = JSON.parse(text.textContent);
        text.remove();
      }
      if (place.chart.series.length) draw(place);
    }
  };

  const drawAgain = () => {
    for (const place of document.querySelectorAll(".chart")) if (place.plot && shown(place)) draw(place);
  };

  drawShown(document);
  document.addEventListener("toggle", (event) => drawShown(event.target), true);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAgain);
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth !== width) { width = innerWidth; drawAgain(); }
  });
})();

//! Line charts as self-contained SVG inside an HTML figure. Colours come from the page's style sheet.

use std::fmt::Write;

use super::axis::Axis;

/// The drawing's size and the space around the plot, in SVG units.
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 18.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 50.0;

/// Series of measured points over two axes.
#[derive(Clone, Debug)]
pub(crate) struct Chart {
    pub title: String,
    /// What must be known to read the chart.
    pub caption: String,
    pub x: Axis,
    pub y: Axis,
    pub series: Vec<Series>,
    /// Horizontal lines that the series are held against.
    pub references: Vec<Reference>,
}

/// Points that belong together, joined by a line in the order given.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    pub name: String,
    pub look: Look,
    pub points: Vec<Point>,
}

/// What a series is, which decides colour, dashes and marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// One of our own measurements, by its rank in the legend.
    Ours(usize),
    /// What it is held against, measured beside it.
    Ceiling,
    /// Published figures from other hardware.
    Paper,
}

/// A measured value, with the ends of its error bar if it has one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    pub x: f64,
    pub y: f64,
    pub range: Option<(f64, f64)>,
}

/// A horizontal line over the whole plot.
#[derive(Clone, Debug)]
pub(crate) struct Reference {
    pub name: String,
    pub look: Look,
    pub y: f64,
}

impl Look {
    fn class(self) -> String {
        match self {
            Look::Ours(rank) => format!("ours-{}", rank % 6),
            Look::Ceiling => "ceiling".to_owned(),
            Look::Paper => "paper".to_owned(),
        }
    }

    /// The marker around a point; shapes differ so that colour is not needed to tell series apart.
    fn marker(self, x: f64, y: f64) -> String {
        let at = |dx: f64, dy: f64| format!("{:.1},{:.1}", x + dx, y + dy);
        match self {
            Look::Ours(rank) if rank % 3 == 1 => {
                format!("<rect x='{:.1}' y='{:.1}' width='7' height='7'", x - 3.5, y - 3.5)
            }
            Look::Ours(rank) if rank % 3 == 2 => {
                format!("<polygon points='{} {} {}'", at(0.0, -4.8), at(4.6, 3.4), at(-4.6, 3.4))
            }
            Look::Ours(_) => format!("<circle cx='{x:.1}' cy='{y:.1}' r='3.8'"),
            Look::Ceiling => format!("<circle cx='{x:.1}' cy='{y:.1}' r='2.4'"),
            Look::Paper => {
                format!("<polygon points='{} {} {} {}'", at(0.0, -5.2), at(5.2, 0.0), at(0.0, 5.2), at(-5.2, 0.0))
            }
        }
    }
}

impl Chart {
    /// The chart as an HTML figure: title, legend, drawing.
    pub(crate) fn to_html(&self) -> String {
        let mut html = String::from("<figure class='chart'>\n<figcaption>");
        put(&mut html, format_args!("<strong>{}</strong>", escaped(&self.title)));
        put(&mut html, format_args!("<span>{}</span></figcaption>\n<ul class='legend'>", escaped(&self.caption)));
        let series = self.series.iter().map(|series| (series.look, &series.name, true));
        let references = self.references.iter().map(|line| (line.look, &line.name, false));
        for (look, name, has_points) in series.chain(references) {
            let marker = if has_points { format!("{}/>", look.marker(13.0, 7.0)) } else { String::new() };
            put(
                &mut html,
                format_args!(
                    "<li><svg class='{}' width='26' height='14' aria-hidden='true'><path d='M1 7H25'/>{marker}</svg>{}</li>",
                    look.class(),
                    escaped(name)
                ),
            );
        }
        put(&mut html, format_args!("</ul>\n{}</figure>\n", self.to_svg()));
        html
    }

    fn to_svg(&self) -> String {
        let label = escaped(&format!("{}: {} against {}", self.title, self.y.label, self.x.label));
        let mut svg = format!("<svg class='plot' viewBox='0 0 {WIDTH} {HEIGHT}' role='img' aria-label='{label}'>\n");
        self.draw_axes(&mut svg);
        for line in &self.references {
            let y = vertical(self.y.clamped(line.y));
            put(
                &mut svg,
                format_args!(
                    "<g class='{}'><path class='reference' d='M{LEFT} {y:.1}H{}'><title>{}</title></path></g>\n",
                    line.look.class(),
                    WIDTH - RIGHT,
                    escaped(&line.name)
                ),
            );
        }
        self.series.iter().for_each(|series| self.draw_series(&mut svg, series));
        svg.push_str("</svg>\n");
        svg
    }

    fn draw_axes(&self, svg: &mut String) {
        svg.push_str("<g class='axes'>\n");
        for (position, text) in self.y.ticks() {
            let y = vertical(position);
            put(svg, format_args!("<path d='M{LEFT} {y:.1}H{}'/>", WIDTH - RIGHT));
            put(svg, format_args!("<text class='y' x='{}' y='{:.1}'>{text}</text>\n", LEFT - 8.0, y + 4.0));
        }
        let bottom = HEIGHT - BOTTOM;
        put(svg, format_args!("<path class='base' d='M{LEFT} {bottom}H{}'/>\n", WIDTH - RIGHT));
        for (position, text) in self.x.ticks() {
            let x = horizontal(position);
            put(svg, format_args!("<path class='base' d='M{x:.1} {bottom}v5'/>"));
            put(svg, format_args!("<text class='x' x='{x:.1}' y='{}'>{text}</text>\n", bottom + 19.0));
        }
        let middle = (LEFT + WIDTH - RIGHT) / 2.0;
        let x_label = escaped(&self.x.label);
        put(svg, format_args!("<text class='label x' x='{middle}' y='{}'>{x_label}</text>\n", HEIGHT - 8.0));
        let (x, y) = (14.0, (TOP + bottom) / 2.0);
        let y_label = escaped(&self.y.label);
        put(
            svg,
            format_args!("<text class='label x' transform='translate({x} {y}) rotate(-90)'>{y_label}</text>\n</g>\n"),
        );
    }

    fn draw_series(&self, svg: &mut String, series: &Series) {
        let place = |point: &Point| Some((horizontal(self.x.position(point.x)?), vertical(self.y.clamped(point.y))));
        let places: Vec<(&Point, (f64, f64))> =
            series.points.iter().filter_map(|point| Some((point, place(point)?))).collect();
        put(svg, format_args!("<g class='{}'>\n<path class='line' d='", series.look.class()));
        for (index, (_, (x, y))) in places.iter().enumerate() {
            put(svg, format_args!("{}{x:.1} {y:.1}", if index == 0 { 'M' } else { 'L' }));
        }
        svg.push_str("'/>\n");
        for (point, (x, y)) in places {
            if let Some((low, high)) = point.range {
                let (low, high) = (vertical(self.y.clamped(low)), vertical(self.y.clamped(high)));
                put(svg, format_args!("<path class='bar' d='M{x:.1} {low:.1}V{high:.1}'/>"));
            }
            let tip = escaped(&self.tip(series, point));
            let marker = series.look.marker(x, y);
            let tag = marker.trim_start_matches('<').split(' ').next().unwrap_or_default().to_owned();
            put(svg, format_args!("{marker}><title>{tip}</title></{tag}>\n"));
        }
        svg.push_str("</g>\n");
    }

    /// What the pointer shows over a point.
    fn tip(&self, series: &Series, point: &Point) -> String {
        let value = if point.y >= 100.0 { crate::bench::table::whole(point.y) } else { format!("{:.3}", point.y) };
        format!("{}\n{}: {}\n{}: {value}", series.name, self.x.label, point.x, self.y.label)
    }
}

fn horizontal(position: f64) -> f64 {
    LEFT + position * (WIDTH - LEFT - RIGHT)
}

fn vertical(position: f64) -> f64 {
    HEIGHT - BOTTOM - position * (HEIGHT - TOP - BOTTOM)
}

fn put(text: &mut String, arguments: std::fmt::Arguments) {
    text.write_fmt(arguments).expect("a string takes any text");
}

/// Text for HTML and its attributes.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('\'', "&#39;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests;

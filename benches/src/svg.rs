//! Drawing: the elements of an SVG file, and three kinds of charts.

use std::fmt::Write;

/// Width of every chart.
pub const WIDTH: usize = 960;
/// What stays free at its edges.
pub const MARGIN: usize = 20;
/// Where the drawing starts, under the titles.
pub const TITLE: usize = 64;

/// Looks: of text `t`itle, `b`old, `f`aint, of ratios `r`, `e`nding at its place, `m`iddle; of a bar the name of its
/// kind.
const STYLE: &str = "\
    text{font:12px system-ui,-apple-system,Segoe UI,Helvetica,Arial,sans-serif;fill:#1f2937}\
    .t{font-size:18px;font-weight:600}.b{font-weight:600}.f{fill:#6b7280}\
    .r{font-weight:600;fill:#d9480f}.e{text-anchor:end}.m{text-anchor:middle}.w{fill:#fff}\
    .stripe{fill:#f3f4f6}.ours{fill:#d9480f}.guest{fill:#ffa94d}\
    .tokio{fill:#3b5bdb}.best{fill:#5c636a}.other{fill:#adb5bd}\
    .grid{stroke:#e5e7eb}.line{fill:none;stroke-width:2}";

/// The elements drawn so far.
#[derive(Debug, Default)]
pub struct Canvas(String);

impl Canvas {
    /// A canvas with a title, what the chart shows, and whose figures they are.
    pub fn titled(title: &str, what: &str, machine: &str, date: &str) -> Self {
        let mut canvas = Self::default();
        canvas.text((MARGIN, 32), "t", title);
        canvas.text((MARGIN, 52), "f", what);
        canvas.text((WIDTH - MARGIN, 32), "f e", machine);
        canvas.text((WIDTH - MARGIN, 52), "f e", date);
        canvas
    }

    /// Text at a place.
    pub fn text(&mut self, (x, y): (usize, usize), class: &str, content: &str) {
        let content = content.replace('&', "&amp;").replace('<', "&lt;");
        let _ = writeln!(
            self.0,
            "<text x='{x}' y='{y}' class='{class}'>{content}</text>"
        );
    }

    /// Text in a colour.
    pub fn coloured(&mut self, (x, y): (usize, usize), colour: &str, content: &str) {
        let content = content.replace('&', "&amp;").replace('<', "&lt;");
        let _ = writeln!(
            self.0,
            "<text x='{x}' y='{y}' style='fill:{colour};font-weight:600'>{content}</text>"
        );
    }

    /// A rectangle of a class.
    pub fn rect(&mut self, (x, y): (usize, usize), (width, height): (f64, usize), class: &str) {
        let _ = writeln!(
            self.0,
            "<rect x='{x}' y='{y}' width='{width:.1}' height='{height}' class='{class}'/>"
        );
    }

    fn filled(&mut self, (x, y): (usize, usize), (width, height): (usize, usize), colour: &str) {
        let _ = writeln!(
            self.0,
            "<rect x='{x}' y='{y}' width='{width}' height='{height}' fill='{colour}'/>"
        );
    }

    fn line(&mut self, from: (f64, f64), to: (f64, f64)) {
        let _ = writeln!(
            self.0,
            "<line x1='{:.1}' y1='{:.1}' x2='{:.1}' y2='{:.1}' class='grid'/>",
            from.0, from.1, to.0, to.1
        );
    }

    fn path(&mut self, points: &[(f64, f64)], colour: &str, width: f64) {
        let points: Vec<String> = points
            .iter()
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        let _ = writeln!(
            self.0,
            "<polyline points='{}' class='line' style='stroke:{colour};stroke-width:{width}'/>",
            points.join(" ")
        );
    }

    fn dot(&mut self, (x, y): (f64, f64), radius: f64, fill: &str, stroke: &str) {
        let _ = writeln!(
            self.0,
            "<circle cx='{x:.1}' cy='{y:.1}' r='{radius}' fill='{fill}' stroke='{stroke}' stroke-width='1.5'/>"
        );
    }

    /// The file.
    pub fn finish(self, height: usize) -> String {
        format!(
            "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {height}' width='{WIDTH}' height='{height}'>\n\
             <style>{STYLE}</style>\n<rect width='{WIDTH}' height='{height}' rx='8' fill='#fff'/>\n{}</svg>\n",
            self.0
        )
    }
}

/// A line of a chart.
#[derive(Clone, Debug)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// Its colour.
    pub colour: &'static str,
    /// Whether it is the one that the chart is about.
    pub ours: bool,
    /// Its figures.
    pub figures: Vec<Option<f64>>,
}

/// Lines over named places, from `top` on, with the name at the end of each line; returns the height.
pub fn lines(
    canvas: &mut Canvas,
    top: usize,
    (title, places): (&str, &[String]),
    series: &[Series],
) -> usize {
    const HEIGHT: f64 = 300.0;
    const LABELS: f64 = 150.0;
    let (left, right) = (MARGIN as f64 + 34.0, WIDTH as f64 - MARGIN as f64 - LABELS);
    let (upper, lower) = (top as f64 + 26.0, top as f64 + 26.0 + HEIGHT);
    let figures = series
        .iter()
        .flat_map(|series| series.figures.iter().flatten());
    let most = figures.copied().fold(f64::MIN_POSITIVE, f64::max);
    let step = nice_step(most);
    let ceiling = (most / step).ceil() * step;
    let x = |index: usize| {
        let gaps = places.len().saturating_sub(1).max(1) as f64;
        left + 30.0 + (right - left - 60.0) * index as f64 / gaps
    };
    let y = |figure: f64| lower - HEIGHT * figure / ceiling;

    canvas.text((MARGIN, top + 12), "b", title);
    for tick in 0..=(ceiling / step).round() as usize {
        let figure = tick as f64 * step;
        canvas.line((left, y(figure)), (right, y(figure)));
        canvas.text(
            (left as usize - 6, y(figure) as usize + 4),
            "f e",
            &format!("{figure}"),
        );
    }
    for (index, place) in places.iter().enumerate() {
        canvas.text((x(index) as usize, lower as usize + 18), "f m", place);
    }
    // Ours last, so that it lies over the others.
    let mut ordered: Vec<&Series> = series.iter().collect();
    ordered.sort_by_key(|series| series.ours);
    for series in &ordered {
        let points: Vec<(f64, f64)> = series
            .figures
            .iter()
            .enumerate()
            .filter_map(|(index, figure)| Some((x(index), y((*figure)?))))
            .collect();
        canvas.path(&points, series.colour, if series.ours { 3.5 } else { 1.8 });
        for point in points {
            canvas.dot(
                point,
                if series.ours { 4.0 } else { 2.5 },
                series.colour,
                "#fff",
            );
        }
    }
    let mut ends: Vec<(f64, &Series)> = series
        .iter()
        .filter_map(|series| {
            Some((
                y(series.figures.iter().rev().flatten().next().copied()?),
                series,
            ))
        })
        .collect();
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let heights = spread_out(ends.iter().map(|end| end.0).collect(), 15.0, upper, lower);
    for ((_, series), height) in ends.iter().zip(heights) {
        canvas.coloured(
            (right as usize + 4, height as usize + 4),
            series.colour,
            &series.name,
        );
    }
    (lower - top as f64) as usize + 30
}

/// Moves what stands too close apart, and keeps it between two edges where it has room. Takes ascending places.
fn spread_out(mut places: Vec<f64>, gap: f64, least: f64, most: f64) -> Vec<f64> {
    let mut floor = least;
    for place in &mut places {
        *place = place.max(floor);
        floor = *place + gap;
    }
    let mut ceiling = most;
    for place in places.iter_mut().rev() {
        *place = place.min(ceiling);
        ceiling = *place - gap;
    }
    places
}

/// A round step that divides up to `most` into four to ten.
fn nice_step(most: f64) -> f64 {
    let rough = most / 5.0;
    let power = 10f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0].map(|factor| factor * power);
    steps
        .into_iter()
        .find(|step| *step >= rough)
        .unwrap_or(rough)
}

/// A row of a heat map: its name, and a ratio for each column.
pub type HeatRow = (String, Vec<Option<f64>>);

/// Ratios as colours, from `top` on: rows in blocks with titles; returns the height.
pub fn heat(
    canvas: &mut Canvas,
    top: usize,
    columns: &[String],
    blocks: &[(String, Vec<HeatRow>)],
) -> usize {
    const ROW: usize = 20;
    const NAMES: usize = 200;
    // Names of columns stand aslant over them, and that of the last needs room.
    const HEAD: usize = 92;
    const SLANT: usize = 70;
    let width = (WIDTH - MARGIN - NAMES - SLANT) / columns.len().max(1);
    let left = |index: usize| NAMES + index * width;
    for (index, column) in columns.iter().enumerate() {
        let (x, y) = (left(index) + width / 2, top + HEAD - 8);
        let _ = writeln!(
            canvas.0,
            "<text x='{x}' y='{y}' class='b' transform='rotate(-35 {x} {y})'>{column}</text>"
        );
    }
    let mut at = top + HEAD;
    for (title, rows) in blocks {
        canvas.text((MARGIN, at + 14), "b", title);
        at += ROW;
        for (name, ratios) in rows {
            canvas.text((NAMES - 8, at + 14), "e", name);
            for (index, ratio) in ratios.iter().enumerate() {
                let Some(ratio) = ratio else { continue };
                let (colour, dark) = heat_colour(*ratio);
                canvas.filled((left(index) + 1, at + 1), (width - 2, ROW - 2), &colour);
                let figure = if *ratio >= 10.0 {
                    format!("{ratio:.0}")
                } else {
                    format!("{ratio:.2}")
                };
                let class = if dark { "m w" } else { "m" };
                canvas.text((left(index) + width / 2, at + 14), class, &figure);
            }
            at += ROW;
        }
        at += 6;
    }
    at - top
}

/// Blue where ours is ahead, red where it is behind, pale at 1, full at four times. And whether it is dark.
fn heat_colour(ratio: f64) -> (String, bool) {
    let strength = (ratio.max(1e-9).log2() / 2.0).clamp(-1.0, 1.0);
    let full = if strength < 0.0 {
        (201, 42, 42)
    } else {
        (25, 113, 194)
    };
    let mix = |full: i32| (250.0 + f64::from(full - 250) * strength.abs()) as u8;
    let colour = format!("#{:02x}{:02x}{:02x}", mix(full.0), mix(full.1), mix(full.2));
    (colour, strength.abs() > 0.55)
}

/// Percentiles of one entrant: its name, whether it is ours, and nanoseconds at p50, p99 and p99.9.
pub type Percentiles = (String, bool, [f64; 3]);

/// Percentiles on a common logarithmic axis, from `top` on; returns the height.
pub fn percentiles(canvas: &mut Canvas, top: usize, title: &str, rows: &[Percentiles]) -> usize {
    const ROW: usize = 20;
    const NAMES: usize = 240;
    const FIGURES: usize = 190;
    let (left, right) = (NAMES as f64 + 10.0, (WIDTH - MARGIN - FIGURES) as f64);
    let all = rows.iter().flat_map(|row| row.2);
    let least = all
        .clone()
        .fold(f64::MAX, f64::min)
        .max(1.0)
        .log10()
        .floor();
    let most = all.fold(10.0, f64::max).log10().ceil().max(least + 1.0);
    let x = |nanos: f64| left + (right - left) * (nanos.max(1.0).log10() - least) / (most - least);
    canvas.text((MARGIN, top + 12), "b", title);
    canvas.text((WIDTH - MARGIN, top + 12), "f e", "p50 ● · p99 ○ · p99.9 |");
    let first = top + 22;
    let last = first + rows.len() * ROW;
    for (index, _) in rows.iter().enumerate().step_by(2) {
        let size = ((WIDTH - 2 * MARGIN) as f64, ROW);
        canvas.rect((MARGIN, first + index * ROW), size, "stripe");
    }
    for decade in least as i32..=most as i32 {
        let nanos = 10f64.powi(decade);
        canvas.line((x(nanos), first as f64), (x(nanos), last as f64));
        canvas.text((x(nanos) as usize, last + 16), "f m", &time(nanos));
    }
    for (index, (name, ours, [p50, p99, p999])) in rows.iter().enumerate() {
        let (at, y) = (first + index * ROW, (first + index * ROW + ROW / 2) as f64);
        let colour = if *ours { "#d9480f" } else { "#5c636a" };
        let weight = if *ours { "e b" } else { "e" };
        canvas.text((NAMES - 8, at + 14), weight, name);
        canvas.path(&[(x(*p50), y), (x(*p999), y)], colour, 1.5);
        canvas.path(&[(x(*p999), y - 5.0), (x(*p999), y + 5.0)], colour, 2.5);
        canvas.dot((x(*p99), y), 4.0, "#fff", colour);
        canvas.dot((x(*p50), y), 4.0, colour, colour);
        let figures = format!("{} · {} · {}", time(*p50), time(*p99), time(*p999));
        canvas.text((WIDTH - MARGIN - 6, at + 14), weight, &figures);
    }
    last - top + 26
}

/// Nanoseconds, shortly.
pub fn time(nanos: f64) -> String {
    let (figure, unit) = match nanos {
        ..1e3 => (nanos, "ns"),
        ..1e6 => (nanos / 1e3, "µs"),
        ..1e9 => (nanos / 1e6, "ms"),
        _ => (nanos / 1e9, "s"),
    };
    if figure < 9.95 && figure.fract() > 0.04 {
        format!("{figure:.1} {unit}")
    } else {
        format!("{figure:.0} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_move_apart_and_stay_inside() {
        assert_eq!(
            spread_out(vec![10.0, 11.0, 12.0], 5.0, 0.0, 100.0),
            [10.0, 15.0, 20.0]
        );
        assert_eq!(spread_out(vec![98.0, 99.0], 5.0, 0.0, 100.0), [95.0, 100.0]);
    }

    #[test]
    fn steps_are_round() {
        assert_eq!(nice_step(70.0), 20.0);
        assert_eq!(nice_step(23.0), 5.0);
        assert_eq!(nice_step(0.9), 0.2);
    }

    #[test]
    fn colours_tell_ahead_from_behind() {
        assert_eq!(heat_colour(1.0).0, "#fafafa");
        assert!(heat_colour(4.0).1 && heat_colour(0.2).1);
        assert_ne!(heat_colour(4.0).0, heat_colour(0.25).0);
    }

    #[test]
    fn times_are_told_shortly() {
        assert_eq!(time(90.0), "90 ns");
        assert_eq!(time(1234.0), "1.2 µs");
        assert_eq!(time(10_000.0), "10 µs");
        assert_eq!(time(2e6), "2 ms");
    }
}

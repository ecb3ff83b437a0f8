//! The comparison as an SVG chart: a row for each pair, a column of bars for each capacity, a block for each workload.
//!
//! Every bar carries its figure, so the chart needs no axes, and a line of text is legend enough.

use std::fmt::Write;

use crate::facts::Facts;
use crate::funnel::CHANNELS;
use crate::results::{CellResult, GroupResult};
use crate::table::{rows, senders, workers, workload};

const WIDTH: usize = 960;
const MARGIN: usize = 20;
const TITLE: usize = 64;
/// Where the bars of the first column start; the names stand left of them.
const NAMES: usize = 240;
const ROW: usize = 18;
const BAR: usize = 12;
/// Room right of the longest bar for its figure.
const FIGURE: usize = 38;

/// Looks: of text `t`itle, `b`old, `f`aint, of ratios `r`, `e`nding at its place; of a bar the name of its kind.
const STYLE: &str = "\
    text{font:12px system-ui,-apple-system,Segoe UI,Helvetica,Arial,sans-serif;fill:#1f2937}\
    .t{font-size:18px;font-weight:600}.b{font-weight:600}.f{fill:#6b7280}\
    .r{font-weight:600;fill:#d9480f}.e{text-anchor:end}\
    .stripe{fill:#f3f4f6}.ours{fill:#d9480f}.guest{fill:#ffa94d}\
    .tokio{fill:#3b5bdb}.best{fill:#5c636a}.other{fill:#adb5bd}";

/// What the colours of `STYLE` mean.
const COLOURS: &str = "Orange: wakerun (light: on tokio), dark: the best other, blue: tokio";

/// Draws the chart.
pub fn svg(facts: &Facts, results: &[GroupResult]) -> String {
    let mut canvas = Canvas::default();
    let workers: Vec<String> = workers(results).iter().map(usize::to_string).collect();
    let workers = match &workers[..] {
        [one] => format!("{one} workers"),
        [others @ .., last] => format!("the best of {} and {last} workers", others.join(", ")),
        [] => String::new(),
    };
    let what = format!("{CHANNELS} bounded channels side by side, {workers}, medians. {COLOURS}");
    canvas.text((MARGIN, 32), "t", "Messages per microsecond");
    canvas.text((MARGIN, 52), "f", &what);
    canvas.text((WIDTH - MARGIN, 32), "f e", &facts.machine());
    canvas.text((WIDTH - MARGIN, 52), "f e", &facts.date);

    let mut height = TITLE + MARGIN;
    for senders in senders(results) {
        height += block(&mut canvas, height, senders, &workload(results, senders)) + MARGIN;
    }
    format!(
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {height}' width='{WIDTH}' height='{height}'>\n\
         <style>{STYLE}</style>\n<rect width='{WIDTH}' height='{height}' rx='8' fill='#fff'/>\n{}</svg>\n",
        canvas.0
    )
}

/// Draws the groups of one workload from `top` on, and returns how high that is.
fn block(canvas: &mut Canvas, top: usize, senders: usize, groups: &[&GroupResult]) -> usize {
    let rows = rows(groups);
    let column = (WIDTH - MARGIN - NAMES) / groups.len();
    let left = |index: usize| NAMES + index * column;
    let rates = rows
        .iter()
        .flat_map(|row| row.cells.iter().flatten())
        .map(|cell| cell.rate());
    let scale = (column - FIGURE) as f64 / rates.fold(f64::MIN_POSITIVE, f64::max);

    let plural = if senders == 1 { "" } else { "s" };
    canvas.text(
        (MARGIN, top + 12),
        "b",
        &format!("{senders} sender{plural} → 1 receiver"),
    );
    for (index, group) in groups.iter().enumerate() {
        canvas.text(
            (left(index), top + 12),
            "b",
            &format!("capacity {}", group.shape.capacity),
        );
    }
    let first = top + 22;
    for (index, row) in rows.iter().enumerate() {
        let top = first + index * ROW;
        if index.is_multiple_of(2) {
            canvas.rect((MARGIN, top), ((WIDTH - 2 * MARGIN) as f64, ROW), "stripe");
        }
        let weight = if row.ours { "b" } else { "" };
        canvas.text((NAMES - 8, top + 13), &format!("e {weight}"), &row.name);
        for (index, cell) in row.cells.iter().enumerate() {
            let Some(cell) = cell else { continue };
            let length = cell.rate() * scale;
            let bar = (left(index), top + (ROW - BAR) / 2);
            canvas.rect(bar, (length, BAR), kind(cell, groups[index]));
            let figure = (left(index) + length as usize + 4, top + 13);
            canvas.text(figure, weight, &format!("{:.1}", cell.rate()));
        }
    }

    let last = first + rows.len() * ROW;
    let ratio = |group: &&GroupResult| Some(group.ours()?.rate() / group.best_other()?.rate());
    let ratios: Vec<Option<f64>> = groups.iter().map(ratio).collect();
    if ratios.iter().any(Option::is_some) {
        canvas.text((NAMES - 8, last + 15), "r e", "ours ÷ best of the others");
    }
    for (index, ratio) in ratios.iter().enumerate() {
        if let Some(ratio) = ratio {
            canvas.text((left(index), last + 15), "r", &format!("{ratio:.2} ×"));
        }
    }
    last + 20 - top
}

/// What a bar stands for.
fn kind(cell: &CellResult, group: &GroupResult) -> &'static str {
    let pair = &cell.cell.pair;
    let best = group.best_other().map(|best| best.cell.name());
    if cell.is_ours() {
        if pair.channel == pair.runtime {
            "ours"
        } else {
            "guest"
        }
    } else if best == Some(cell.cell.name()) {
        "best"
    } else if pair.channel == "tokio" {
        "tokio"
    } else {
        "other"
    }
}

/// The elements drawn so far.
#[derive(Default)]
struct Canvas(String);

impl Canvas {
    fn text(&mut self, (x, y): (usize, usize), class: &str, content: &str) {
        let content = content.replace('&', "&amp;").replace('<', "&lt;");
        let _ = writeln!(
            self.0,
            "<text x='{x}' y='{y}' class='{class}'>{content}</text>"
        );
    }

    fn rect(&mut self, (x, y): (usize, usize), (width, height): (f64, usize), class: &str) {
        let _ = writeln!(
            self.0,
            "<rect x='{x}' y='{y}' width='{width:.1}' height='{height}' class='{class}'/>"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::invented;

    #[test]
    fn the_chart_stays_inside_its_frame() {
        let chart = svg(&Facts::gather(), &invented());
        let figures = |name: &str| {
            let attribute = format!(" {name}='");
            let starts = chart.split(&attribute).skip(1);
            starts
                .filter_map(|rest| rest.split('\'').next()?.parse::<f64>().ok())
                .collect::<Vec<_>>()
        };
        let height = figures("height")[0];
        assert!(figures("x").iter().all(|x| *x < WIDTH as f64));
        assert!(figures("y").iter().all(|y| *y < height));
        assert!(
            chart.len() < 60_000,
            "light enough to commit: {}",
            chart.len()
        );
    }

    #[test]
    fn every_element_is_closed() {
        let chart = svg(&Facts::gather(), &invented());
        assert_eq!(
            chart.matches("<text ").count(),
            chart.matches("</text>").count()
        );
        assert_eq!(chart.matches("<rect ").count(), chart.matches("/>").count());
    }
}

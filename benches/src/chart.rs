//! The charts.
//!
//! That of the funnel has a row for each pair, a column of bars for each capacity, a block for each workload. Every bar carries its figure, so the chart needs no axes, and a line of text is legend enough.

use crate::facts::Facts;
use crate::funnel::CHANNELS;
use crate::latency::LatencyResult;
use crate::results::{CellResult, GroupResult};
use crate::svg::{self, Canvas, MARGIN, Series, TITLE, WIDTH};
use crate::table::{blocks, rows, workers};

/// Where the bars of the first column start; the names stand left of them.
const NAMES: usize = 240;
const ROW: usize = 18;
const BAR: usize = 12;
/// Room right of the longest bar for its figure.
const FIGURE: usize = 38;

/// What the colours of the bars mean.
const COLOURS: &str = "Orange: wakerun (light: on tokio), dark: the best other, blue: tokio";

/// Draws the chart of the funnel.
pub fn bars(facts: &Facts, results: &[GroupResult]) -> String {
    let groups: Vec<&GroupResult> = results.iter().collect();
    let workers: Vec<String> = workers(&groups).iter().map(usize::to_string).collect();
    let workers = match &workers[..] {
        [one] => format!("{one} workers"),
        [others @ .., last] => format!("the best of {} and {last} workers", others.join(", ")),
        [] => String::new(),
    };
    let what = format!("{CHANNELS} bounded channels side by side, {workers}, medians. {COLOURS}");
    let title = "Messages per microsecond";
    let mut canvas = Canvas::titled(title, &what, &facts.machine(), &facts.date);

    let mut height = TITLE + MARGIN;
    for groups in blocks(results) {
        height += block(&mut canvas, height, &groups) + MARGIN;
    }
    canvas.finish(height)
}

/// Draws the groups of one workload from `top` on, and returns how high that is.
fn block(canvas: &mut Canvas, top: usize, groups: &[&GroupResult]) -> usize {
    let rows = rows(groups);
    let column = (WIDTH - MARGIN - NAMES) / groups.len();
    let left = |index: usize| NAMES + index * column;
    let rates = rows
        .iter()
        .flat_map(|row| row.cells.iter().flatten())
        .map(|cell| cell.rate());
    let scale = (column - FIGURE) as f64 / rates.fold(f64::MIN_POSITIVE, f64::max);

    canvas.text((MARGIN, top + 12), "b", &title_of(groups));
    for (index, group) in groups.iter().enumerate() {
        canvas.text(
            (left(index), top + 12),
            "b",
            &group.group.column.replace("cap ", "capacity "),
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
    let best = group.best_other().map(|best| best.cell.name());
    if cell.cell.is_ours() {
        if cell.cell.is_at_home() {
            "ours"
        } else {
            "guest"
        }
    } else if best == Some(cell.cell.name()) {
        "best"
    } else if cell.cell.channel == "tokio" {
        "tokio"
    } else {
        "other"
    }
}

/// The colours of the channels; the rest is grey.
const CHANNELS_COLOURS: [(&str, &str); 9] = [
    ("wakerun", "#d9480f"),
    ("tokio", "#3b5bdb"),
    ("kanal", "#2b8a3e"),
    ("crossfire", "#9c36b5"),
    ("tachyonix", "#0b7285"),
    ("flume", "#b08900"),
    ("async-channel", "#c2255c"),
    ("asyncband", "#7a4a21"),
    ("thingbuf", "#74b816"),
];

/// The colour of a channel.
fn colour(channel: &str) -> &'static str {
    let colours = CHANNELS_COLOURS.iter();
    let mut own = colours.filter(|(name, _)| channel.starts_with(name));
    own.next().map_or("#868e96", |(_, colour)| *colour)
}

/// The channels in the groups, variants of one package as one, in the order of their first cells.
fn channels<'a>(groups: &[&'a GroupResult]) -> Vec<&'a str> {
    let mut channels: Vec<&str> = Vec::new();
    for cell in groups.iter().flat_map(|group| &group.cells) {
        let name = package(cell.cell.channel);
        if !channels.contains(&name) && (cell.cell.is_ours() || cell.cell.is_peer()) {
            channels.push(name);
        }
    }
    channels
}

/// The first word of a channel's name: variants of one package share it.
fn package(channel: &str) -> &str {
    channel.split(' ').next().unwrap_or(channel)
}

/// The best cell of a channel and its variants, of ours only where it is at home.
fn best_of<'a>(group: &'a GroupResult, channel: &str) -> Option<&'a CellResult> {
    group.best(|cell| package(cell.channel) == channel && (cell.is_peer() || cell.is_at_home()))
}

/// Draws the throughput of the funnel by capacity: a line for each channel, on the runtime that is best for it.
pub fn capacities(facts: &Facts, results: &[GroupResult]) -> Option<String> {
    let of_funnel = |block: &Vec<&GroupResult>| block[0].group.suite == "funnel" && block.len() > 1;
    let blocks: Vec<Vec<&GroupResult>> = blocks(results).into_iter().filter(of_funnel).collect();
    if blocks.is_empty() {
        return None;
    }
    let what = format!(
        "{CHANNELS} channels side by side, by capacity; each channel on the runtime that suits it best"
    );
    let title = "Messages per microsecond";
    let mut canvas = Canvas::titled(title, &what, &facts.machine(), &facts.date);
    let mut height = TITLE + MARGIN;
    for groups in blocks {
        let places: Vec<String> = groups
            .iter()
            .map(|group| group.group.column.clone())
            .collect();
        let line = |channel: &str| Series {
            name: channel.into(),
            colour: colour(channel),
            ours: channel.starts_with(crate::ours::NAME),
            figures: groups
                .iter()
                .map(|group| Some(best_of(group, channel)?.rate()))
                .collect(),
        };
        let series: Vec<Series> = channels(&groups).into_iter().map(line).collect();
        let title = title_of(&groups);
        height += svg::lines(&mut canvas, height, (&title, &places), &series) + MARGIN;
    }
    Some(canvas.finish(height))
}

/// Draws ours against each channel, and against the best of all, in every group.
pub fn ratios(facts: &Facts, results: &[GroupResult]) -> Option<String> {
    let with_channels: Vec<&GroupResult> = results
        .iter()
        .filter(|group| group.ours().is_some() && !group.cells[0].cell.channel.is_empty())
        .collect();
    let mut columns = channels(&with_channels);
    columns.retain(|channel| !channel.starts_with(crate::ours::NAME));
    if columns.is_empty() {
        return None;
    }
    let row = |group: &&GroupResult| {
        let ours = group.ours()?.rate();
        let against = |cell: Option<&CellResult>| Some(ours / cell?.rate());
        let of = |channel: &&str| against(best_of(group, channel));
        let best = against(group.best_other());
        let ratios = std::iter::once(best).chain(columns.iter().map(of));
        Some((group.group.column.clone(), ratios.collect()))
    };
    let block = |groups: &Vec<&GroupResult>| {
        let rows: Vec<svg::HeatRow> = groups.iter().filter_map(row).collect();
        (title_of(groups), rows)
    };
    let rows: Vec<(String, Vec<svg::HeatRow>)> = blocks(results)
        .iter()
        .filter(|groups| !groups[0].cells[0].cell.channel.is_empty())
        .map(block)
        .filter(|(_, rows)| !rows.is_empty())
        .collect();
    let names: Vec<String> = std::iter::once("the best of all")
        .chain(columns.iter().copied())
        .map(String::from)
        .collect();
    let mut canvas = Canvas::titled(
        "How many times as fast wakerun is",
        "Against each channel on the runtime that suits it best. Blue: ahead; red: behind",
        &facts.machine(),
        &facts.date,
    );
    let height = svg::heat(&mut canvas, TITLE + 8, &names, &rows);
    Some(canvas.finish(TITLE + 8 + height + MARGIN))
}

/// Draws the percentiles of the latencies.
pub fn latencies(facts: &Facts, results: &[LatencyResult]) -> Option<String> {
    if results.is_empty() {
        return None;
    }
    let mut canvas = Canvas::titled(
        "From before send until after receive",
        "Percentiles, the medians of the rounds, on two workers; less is better",
        &facts.machine(),
        &facts.date,
    );
    let mut height = TITLE + MARGIN;
    for (loaded, title) in [
        (true, "Under load: 4 senders at full speed, capacity 64"),
        (false, "From outside: a thread sends to a task that sleeps"),
    ] {
        let mut rows: Vec<svg::Percentiles> = results
            .iter()
            .filter(|result| result.loaded == loaded)
            .map(|result| (result.name.clone(), result.ours, result.medians()))
            .collect();
        rows.sort_by(|a, b| b.1.cmp(&a.1).then(a.2[1].total_cmp(&b.2[1])));
        if !rows.is_empty() {
            height += svg::percentiles(&mut canvas, height, title, &rows) + MARGIN;
        }
    }
    Some(canvas.finish(height))
}

/// The title of a table's groups.
fn title_of(groups: &[&GroupResult]) -> String {
    match groups[0].group.block.as_str() {
        "funnel-13" => "13 senders → 1 receiver".into(),
        "funnel-1" => "1 sender → 1 receiver".into(),
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::invented;

    #[test]
    fn the_chart_stays_inside_its_frame() {
        let chart = bars(&Facts::gather("cargo bench"), &invented());
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
    fn every_element_of_every_chart_is_closed() {
        let facts = Facts::gather("cargo bench");
        let results = invented();
        let latencies = latencies(&facts, &crate::latency::tests::invented());
        let charts = [
            Some(bars(&facts, &results)),
            capacities(&facts, &results),
            ratios(&facts, &results),
            latencies,
        ];
        for chart in charts {
            is_closed(&chart.expect("there is something to draw"));
        }
    }

    fn is_closed(chart: &str) {
        assert_eq!(
            chart.matches("<text ").count(),
            chart.matches("</text>").count()
        );
        let bare = ["<rect ", "<line ", "<polyline ", "<circle "];
        let opened: usize = bare.map(|tag| chart.matches(tag).count()).iter().sum();
        assert_eq!(opened, chart.matches("/>").count());
    }
}

//! The tables on stdout, in Markdown.

use std::fmt::Write;

use crate::goals::Goal;
use crate::pairs::NOTES;
use crate::results::{self, CellResult, GroupResult};

/// Marks a cell that was asked for fewer messages than its group.
const FEWER: &str = "†";

/// A pair with its best cell in each of some groups.
#[derive(Debug)]
pub(crate) struct Row<'a> {
    /// The pair's name.
    pub(crate) name: String,
    /// Whether the channel is ours.
    pub(crate) ours: bool,
    /// Its best cell in each group, where it has one.
    pub(crate) cells: Vec<Option<&'a CellResult>>,
}

impl Row<'_> {
    /// The geometric mean of its rates.
    fn mean(&self) -> f64 {
        let rates: Vec<f64> = self
            .cells
            .iter()
            .flatten()
            .map(|cell| cell.rate().ln())
            .collect();
        rates.iter().sum::<f64>() / rates.len() as f64
    }
}

/// The groups of one workload: those with that many senders.
pub(crate) fn workload(results: &[GroupResult], senders: usize) -> Vec<&GroupResult> {
    results
        .iter()
        .filter(|group| group.shape.senders == senders)
        .collect()
}

/// The numbers of senders in the results, in order.
pub(crate) fn senders(results: &[GroupResult]) -> Vec<usize> {
    let mut senders: Vec<usize> = results.iter().map(|group| group.shape.senders).collect();
    senders.dedup();
    senders
}

/// A row for each pair in the groups: ours first, then by falling speed.
pub(crate) fn rows<'a>(groups: &[&'a GroupResult]) -> Vec<Row<'a>> {
    let mut rows: Vec<Row<'a>> = Vec::new();
    for cell in groups.iter().flat_map(|group| &group.cells) {
        let pair = &cell.cell.pair;
        if rows.iter().all(|row| row.name != pair.name()) {
            let best = |group: &&'a GroupResult| {
                group.best(|cell| cell.is_pair(pair.channel, pair.runtime))
            };
            rows.push(Row {
                name: pair.name(),
                ours: cell.is_ours(),
                cells: groups.iter().map(best).collect(),
            });
        }
    }
    rows.sort_by(|a, b| b.ours.cmp(&a.ours).then(b.mean().total_cmp(&a.mean())));
    rows
}

/// The numbers of workers in the results, in order.
pub(crate) fn workers(results: &[GroupResult]) -> Vec<usize> {
    let cells = results.iter().flat_map(|group| &group.cells);
    let mut workers: Vec<usize> = cells.map(|cell| cell.cell.workers).collect();
    workers.sort();
    workers.dedup();
    workers
}

/// Every cell of every group, as `median (least–most)`.
pub fn spreads(results: &[GroupResult]) -> String {
    let mut text = String::new();
    for senders in senders(results) {
        let groups = workload(results, senders);
        let mut table = vec![header(
            &groups,
            format!("{senders} → 1, median (least–most)"),
        )];
        for row in rows(&groups) {
            for &workers in &workers(results) {
                let name = format!("{} w{workers}", row.name);
                let of = |group: &&GroupResult| {
                    let cell = group.cells.iter().find(|cell| cell.cell.name() == name);
                    cell.map_or(String::new(), |cell| spread(&cell.rates()))
                };
                let line: Vec<String> = groups.iter().map(of).collect();
                if line.iter().any(|cell| !cell.is_empty()) {
                    table.push([vec![name], line].concat());
                }
            }
        }
        let _ = writeln!(text, "{}", markdown(&table));
    }
    text
}

/// The comparison: the best cell of every pair in every group, and ours against the best of the others.
pub fn comparison(results: &[GroupResult]) -> String {
    let workers = workers(results);
    let several = workers.len() > 1;
    let rounds = results.iter().map(GroupResult::rounds);
    let (least, most) = (rounds.clone().min().unwrap_or(0), rounds.max().unwrap_or(0));
    let mut text = format!(
        "Messages per microsecond through {} channels, by capacity; the median of {} interleaved rounds\n",
        crate::funnel::CHANNELS,
        if least == most {
            most.to_string()
        } else {
            format!("{least} to {most}")
        },
    );
    if let [workers] = workers[..] {
        let _ = writeln!(text, "on {workers} workers.");
    } else {
        let _ = writeln!(
            text,
            "on the number of workers, of {workers:?}, that is best; it stands after the dot."
        );
    }
    for senders in senders(results) {
        let groups = workload(results, senders);
        let mut table = vec![header(&groups, format!("{senders} → 1"))];
        for row in rows(&groups) {
            let show = |(cell, group): (&Option<&CellResult>, &&GroupResult)| {
                cell.map_or(String::new(), |cell| median(cell, group, several))
            };
            let cells = row.cells.iter().zip(&groups).map(show).collect();
            table.push([vec![row.name.clone()], cells].concat());
        }
        let against = |name: &str, other: fn(&GroupResult) -> Option<&CellResult>| {
            let ratio = |group: &&GroupResult| match (group.ours(), other(group)) {
                (Some(ours), Some(other)) => format!("{:.2}", ours.rate() / other.rate()),
                _ => String::new(),
            };
            [vec![name.to_string()], groups.iter().map(ratio).collect()].concat()
        };
        if groups.iter().any(|group| group.ours().is_some()) {
            table.push(against(
                "**ours ÷ best of the others**",
                GroupResult::best_other,
            ));
            table.push(against("**ours ÷ tokio on tokio**", GroupResult::tokio));
        }
        let _ = write!(text, "\n{}", markdown(&table));
    }
    text.push('\n');
    if text.contains(FEWER) {
        let _ = writeln!(text, "{FEWER} Slow, and so measured with fewer messages.");
    }
    NOTES.iter().fold(text, |text, note| text + note + "\n")
}

/// The goals, one a line.
pub fn verdicts(goals: &[Goal]) -> String {
    let mut table = vec![
        ["goal", "ours", "the other", "", "ratio", "asked", ""]
            .map(String::from)
            .to_vec(),
    ];
    for goal in goals {
        table.push(vec![
            format!("{}: {}", goal.group, goal.against),
            format!("{:.1}", goal.ours),
            format!("{:.1}", goal.other),
            goal.other_name.clone(),
            format!("{:.2}", goal.ratio()),
            format!("{:.1}", goal.asked),
            if goal.met() { "met" } else { "**not met**" }.to_string(),
        ]);
    }
    let met = goals.iter().filter(|goal| goal.met()).count();
    format!("{}{met} of {} goals met\n", markdown(&table), goals.len())
}

fn header(groups: &[&GroupResult], title: String) -> Vec<String> {
    let capacities = groups.iter().map(|group| group.shape.capacity.to_string());
    std::iter::once(title).chain(capacities).collect()
}

fn median(cell: &CellResult, group: &GroupResult, several: bool) -> String {
    let workers = if several {
        format!("·{}", cell.cell.workers)
    } else {
        String::new()
    };
    let fewer = if cell.shape == group.shape { "" } else { FEWER };
    format!("{:.1}{workers}{fewer}", cell.rate())
}

/// Figures in ascending order as `median (least–most)`.
pub(crate) fn spread(figures: &[f64]) -> String {
    format!(
        "{:.1} ({:.1}–{:.1})",
        results::median(figures),
        figures[0],
        figures[figures.len() - 1]
    )
}

/// Lines of cells as an aligned Markdown table; the first line is the header, the first column stands left.
pub(crate) fn markdown(lines: &[Vec<String>]) -> String {
    let width = |column: usize| {
        lines
            .iter()
            .map(|line| line[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..lines[0].len()).map(width).collect();
    let mut text = String::new();
    for (index, line) in lines.iter().enumerate() {
        for (column, (cell, &width)) in line.iter().zip(&widths).enumerate() {
            let _ = match column {
                0 => write!(text, "| {cell:width$} |"),
                _ => write!(text, " {cell:>width$} |"),
            };
        }
        text.push('\n');
        if index == 0 {
            for (column, width) in widths.iter().enumerate() {
                let _ = match column {
                    0 => write!(text, "|:{}-|", "-".repeat(*width)),
                    _ => write!(text, "-{}:|", "-".repeat(*width)),
                };
            }
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goals::goals;
    use crate::results::tests::invented;

    #[test]
    fn a_table_has_straight_columns() {
        let line = |cells: [&str; 2]| cells.map(String::from).to_vec();
        let table = markdown(&[line(["a", "column"]), line(["a longer name", "1·2"])]);
        let expected = "\
            | a             | column |\n\
            |:--------------|-------:|\n\
            | a longer name |    1·2 |\n";
        assert_eq!(table, expected);
    }

    #[test]
    fn a_row_shows_the_best_number_of_workers() {
        let table = comparison(&invented());
        let row = table
            .lines()
            .find(|line| line.starts_with("| flume on tokio"))
            .unwrap();
        assert!(row.contains("·1") && !row.contains("·2"), "{row}");
    }

    #[test]
    fn thinned_cells_are_marked() {
        let mut results = invented();
        assert_eq!(comparison(&results).matches(FEWER).count(), 0);
        let best = &mut results[0].cells[0];
        best.shape.per_sender /= 2;
        best.times.iter_mut().for_each(|time| *time /= 2);
        assert_eq!(
            comparison(&results).matches(FEWER).count(),
            2,
            "the cell and the legend"
        );
    }

    #[test]
    fn every_goal_has_a_verdict() {
        let goals = goals(&invented());
        assert_eq!(
            verdicts(&goals).matches("met |").count() + verdicts(&goals).matches("met** |").count(),
            goals.len()
        );
    }
}

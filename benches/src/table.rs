//! The tables on stdout, in Markdown.

use std::fmt::Write;

use crate::goals::{self, Goal};
use crate::peers::NOTES;
use crate::plan::Unit;
use crate::results::{self, CellResult, GroupResult};

/// Marks a cell that was asked for less work than its group.
const FEWER: &str = "†";

/// What stands for a verdict where there are no cells to judge.
const NOT_MEASURED: &str = "not measured";

/// An entrant with its best cell in each of some groups.
#[derive(Debug)]
pub(crate) struct Row<'a> {
    /// The entrant's name.
    pub(crate) name: String,
    /// Whether it is ours.
    pub(crate) ours: bool,
    /// Its best cell in each group, where it has one.
    pub(crate) cells: Vec<Option<&'a CellResult>>,
}

impl Row<'_> {
    /// The geometric mean of its rates.
    fn mean(&self) -> f64 {
        let cells = self.cells.iter().flatten();
        let rates: Vec<f64> = cells.map(|cell| cell.rate().ln()).collect();
        rates.iter().sum::<f64>() / rates.len() as f64
    }
}

/// The groups by table, in order.
pub(crate) fn blocks(results: &[GroupResult]) -> Vec<Vec<&GroupResult>> {
    let mut blocks: Vec<Vec<&GroupResult>> = Vec::new();
    for group in results {
        match blocks.last_mut() {
            Some(block) if block[0].group.block == group.group.block => block.push(group),
            _ => blocks.push(vec![group]),
        }
    }
    blocks
}

/// A row for each entrant in the groups: ours first, then by falling speed.
pub(crate) fn rows<'a>(groups: &[&'a GroupResult]) -> Vec<Row<'a>> {
    let mut rows: Vec<Row<'a>> = Vec::new();
    for cell in groups.iter().flat_map(|group| &group.cells) {
        let name = cell.cell.entrant();
        if rows.iter().all(|row| row.name != name) {
            let best = |group: &&'a GroupResult| group.best(|cell| cell.entrant() == name);
            let cells = groups.iter().map(best).collect();
            rows.push(Row {
                name,
                ours: cell.cell.is_ours(),
                cells,
            });
        }
    }
    rows.retain(|row| row.cells.iter().any(Option::is_some));
    rows.sort_by(|a, b| b.ours.cmp(&a.ours).then(b.mean().total_cmp(&a.mean())));
    rows
}

/// The numbers of workers that are compared in the groups, in order.
pub(crate) fn workers(groups: &[&GroupResult]) -> Vec<usize> {
    let compared = groups.iter().flat_map(|group| &group.group.compared);
    let mut workers: Vec<usize> = compared.copied().collect();
    workers.sort();
    workers.dedup();
    workers
}

/// Every cell of every group, as `median (least–most)`.
pub fn spreads(results: &[GroupResult]) -> String {
    let mut text = String::new();
    for groups in blocks(results) {
        let mut table = vec![header(&groups, "median (least–most)")];
        let cells = groups.iter().flat_map(|group| &group.cells);
        let mut names: Vec<String> = Vec::new();
        for name in cells.map(|cell| cell.cell.name()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        for name in names {
            let of = |group: &&GroupResult| {
                let cell = group.cells.iter().find(|cell| cell.cell.name() == name);
                cell.map_or(String::new(), |cell| spread(&figures(cell, group)))
            };
            let line: Vec<String> = groups.iter().map(of).collect();
            table.push([vec![name], line].concat());
        }
        let _ = writeln!(text, "{}", markdown(&table));
    }
    text
}

/// The figures of a cell's rounds, in ascending order.
fn figures(cell: &CellResult, group: &GroupResult) -> Vec<f64> {
    let unit = group.group.unit;
    let mut figures: Vec<f64> = cell.rates().iter().map(|rate| unit.figure(*rate)).collect();
    figures.sort_by(f64::total_cmp);
    figures
}

/// The comparison of one table: the best cell of every entrant in every group, and ours against the best of the others.
pub(crate) fn compared(groups: &[&GroupResult]) -> Vec<Vec<String>> {
    let several = workers(groups).len() > 1;
    let mut table = vec![header(groups, "")];
    for row in rows(groups) {
        let show = |(cell, group): (&Option<&CellResult>, &&GroupResult)| {
            cell.map_or(String::new(), |cell| median(cell, group, several))
        };
        let cells = row.cells.iter().zip(groups).map(show).collect();
        table.push([vec![row.name.clone()], cells].concat());
    }
    let mut against = |name: &str, other: fn(&GroupResult) -> Option<&CellResult>| {
        let ratio = |group: &&GroupResult| match (group.ours(), other(group)) {
            (Some(ours), Some(other)) => format!("{:.2}", ours.rate() / other.rate()),
            _ => String::new(),
        };
        let ratios: Vec<String> = groups.iter().map(ratio).collect();
        if ratios.iter().any(|ratio| !ratio.is_empty()) {
            table.push([vec![name.to_string()], ratios].concat());
        }
    };
    against("**ours against the best other**", GroupResult::best_other);
    against("**ours against tokio**", GroupResult::tokio);
    table
}

/// What a table shows, in a line.
pub(crate) fn caption(groups: &[&GroupResult]) -> String {
    let rounds = groups.iter().map(|group| group.rounds());
    let (least, most) = (rounds.clone().min().unwrap_or(0), rounds.max().unwrap_or(0));
    let rounds = if least == most {
        most.to_string()
    } else {
        format!("{least} to {most}")
    };
    let better = match groups[0].group.unit {
        Unit::Rate => "more is better",
        Unit::Nanos => "less is better",
    };
    let workers = match &workers(groups)[..] {
        [] => String::new(),
        [workers] => format!(", on {workers} workers"),
        workers => {
            format!(", on the number of workers, of {workers:?}, that is best (after the dot)")
        }
    };
    let unit = groups[0].group.unit.name();
    let unit = unit[..1].to_uppercase() + &unit[1..];
    format!("{unit}, {better}; the median of {rounds} interleaved rounds{workers}")
}

/// The comparison of all tables.
pub fn comparison(results: &[GroupResult]) -> String {
    let mut text = String::new();
    for groups in blocks(results) {
        let _ = writeln!(
            text,
            "{}\n\n{}",
            caption(&groups),
            markdown(&compared(&groups))
        );
    }
    if text.contains(FEWER) {
        let _ = writeln!(text, "{FEWER} Slow, and so measured with less work.");
    }
    let cells = results.iter().flat_map(|group| &group.cells);
    let channels: Vec<&str> = cells.map(|cell| cell.cell.channel).collect();
    let told = |note: &&&str| {
        channels
            .iter()
            .any(|name| !name.is_empty() && note.starts_with(name))
    };
    NOTES
        .iter()
        .filter(told)
        .fold(text, |text, note| text + note + "\n")
}

/// The goals: a line for each row of them, with the cell that is farthest from it, and then a line for each cell.
///
/// Only a report tells the rows of which nothing was measured.
pub fn verdicts(goals: &[Goal], report: bool) -> String {
    let mut rows = goal_rows(goals);
    rows.retain(|row| report || row[5] != NOT_MEASURED);
    let mut text = format!("\n{}", markdown(&rows));
    let _ = writeln!(text, "\n{}", markdown(&goal_cells(goals)));
    let met = goals.iter().filter(|goal| goal.met()).count();
    let _ = writeln!(text, "{met} of {} cells meet their goals", goals.len());
    text
}

/// A line for each row of the goals.
pub(crate) fn goal_rows(goals: &[Goal]) -> Vec<Vec<String>> {
    let mut table = vec![
        ["goal", "cells met", "farthest", "ratio", "asked", ""]
            .map(String::from)
            .to_vec(),
    ];
    for row in goals::Row::ALL {
        let of_row: Vec<&Goal> = goals.iter().filter(|goal| goal.row == row).collect();
        let share = |goal: &Goal| goal.ratio() / goal.asked;
        let farthest = of_row.iter().min_by(|a, b| share(a).total_cmp(&share(b)));
        let met = of_row.iter().filter(|goal| goal.met()).count();
        table.push(match farthest {
            None => vec![
                row.name().into(),
                String::new(),
                String::new(),
                String::new(),
                String::new(),
                NOT_MEASURED.into(),
            ],
            Some(goal) => vec![
                row.name().into(),
                format!("{met} of {}", of_row.len()),
                goal.cell.clone(),
                ratio(goal),
                format!("{:.2}", goal.asked),
                verdict(met == of_row.len()).into(),
            ],
        });
    }
    table
}

/// A line for each cell with a goal.
pub(crate) fn goal_cells(goals: &[Goal]) -> Vec<Vec<String>> {
    let mut table = vec![
        [
            "cell",
            "against",
            "ours",
            "the other",
            "",
            "ratio",
            "asked",
            "",
        ]
        .map(String::from)
        .to_vec(),
    ];
    for goal in goals {
        table.push(vec![
            goal.cell.clone(),
            goal.against.into(),
            format!("{:.1}", goal.ours),
            format!("{:.1}", goal.other),
            goal.other_name.clone(),
            ratio(goal),
            format!("{:.2}", goal.asked),
            verdict(goal.met()).into(),
        ]);
    }
    table
}

fn ratio(goal: &Goal) -> String {
    match goal.ratio() {
        ratio if ratio < 1000.0 => format!("{ratio:.2}"),
        _ => "–".into(),
    }
}

fn verdict(met: bool) -> &'static str {
    if met { "met" } else { "**not met**" }
}

fn header(groups: &[&GroupResult], title: &str) -> Vec<String> {
    let columns = groups.iter().map(|group| group.group.column.clone());
    let block = &groups[0].group.block;
    let title = if title.is_empty() {
        block.clone()
    } else {
        format!("{block}, {title}")
    };
    std::iter::once(title).chain(columns).collect()
}

fn median(cell: &CellResult, group: &GroupResult, several: bool) -> String {
    let unit = group.group.unit;
    let workers = if several && cell.cell.workers > 0 {
        format!("·{}", cell.cell.workers)
    } else {
        String::new()
    };
    let fewer = if cell.work == group.group.work || unit == Unit::Nanos {
        ""
    } else {
        FEWER
    };
    format!("{:.1}{workers}{fewer}", unit.figure(cell.rate()))
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
pub fn markdown(lines: &[Vec<String>]) -> String {
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
        best.work /= 2;
        assert_eq!(
            comparison(&results).matches(FEWER).count(),
            2,
            "the cell and the legend"
        );
    }

    #[test]
    fn every_goal_has_a_verdict() {
        let goals = goals::goals(&invented(), None);
        let cells = goal_cells(&goals);
        assert_eq!(cells.len(), goals.len() + 1);
        assert!(cells[1..].iter().all(|cell| cell[7].contains("met")));
    }

    #[test]
    fn every_row_of_goals_is_told() {
        let rows = goal_rows(&goals::goals(&invented(), None));
        assert_eq!(rows.len(), goals::Row::ALL.len() + 1);
        assert_eq!(rows[12][5], NOT_MEASURED, "no memory was looked at");
    }
}

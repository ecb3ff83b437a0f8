//! The results as JSON.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::facts::{Facts, version};
use crate::goals::Goal;
use crate::peers::NOTES;
use crate::plan::Form;
use crate::results::{CellResult, GroupResult};

/// The whole run.
///
/// # Panics
///
/// Never: what is made here can always be written.
pub fn json(
    benchmark: &str,
    form: Form,
    facts: &Facts,
    results: &[GroupResult],
    goals: &[Goal],
) -> String {
    let report = json!({
        "benchmark": benchmark,
        "form": form.name(),
        "date": facts.date,
        "command": facts.command,
        "commit": facts.commit,
        "machine": { "cpu": facts.cpu, "cores": facts.cores, "os": facts.os },
        "rustc": facts.rustc,
        "packages": packages(results),
        "groups": results.iter().map(group).collect::<Vec<_>>(),
        "goals": goals.iter().map(goal).collect::<Vec<_>>(),
        "notes": NOTES,
    });
    serde_json::to_string_pretty(&report).expect("strings and numbers") + "\n"
}

/// The versions of the packages that took part.
pub fn packages(results: &[GroupResult]) -> BTreeMap<&'static str, &'static str> {
    let cells = results.iter().flat_map(|group| &group.cells);
    cells
        .flat_map(|cell| &cell.cell.packages)
        .map(|package| (*package, version(package)))
        .collect()
}

fn group(group: &GroupResult) -> Value {
    let ratio = |other: Option<&CellResult>| Some(rounded(group.ours()?.rate() / other?.rate()));
    json!({
        "name": group.name(),
        "unit": group.group.unit.name(),
        "work": group.group.work,
        "rounds": group.rounds(),
        "best_other": group.best_other().map(|cell| cell.cell.name()),
        "ours_to_best_other": ratio(group.best_other()),
        "ours_to_tokio": ratio(group.tokio()),
        "cells": group.cells.iter().map(|one| cell(group, one)).collect::<Vec<_>>(),
    })
}

fn cell(group: &GroupResult, cell: &CellResult) -> Value {
    let unit = group.group.unit;
    let mut figures: Vec<f64> = cell.rates().iter().map(|rate| unit.figure(*rate)).collect();
    figures.sort_by(f64::total_cmp);
    json!({
        "channel": cell.cell.channel,
        "runtime": cell.cell.runtime,
        "workers": cell.cell.workers,
        "work": cell.work,
        "median": rounded(unit.figure(cell.rate())),
        "least": rounded(figures[0]),
        "most": rounded(figures[figures.len() - 1]),
    })
}

fn goal(goal: &Goal) -> Value {
    json!({
        "row": goal.row.name(),
        "cell": goal.cell,
        "against": goal.against,
        "ours": rounded(goal.ours),
        "other": rounded(goal.other),
        "other_name": goal.other_name,
        "ratio": rounded(goal.ratio()),
        "asked": goal.asked,
        "met": goal.met(),
    })
}

/// Three digits after the point are more than the measurement has.
fn rounded(figure: f64) -> f64 {
    (figure * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::invented;

    #[test]
    fn the_report_can_be_read_back() {
        let results = invented();
        let goals = crate::goals::goals(&results, None);
        let facts = Facts::gather("cargo bench");
        let text = json("funnel", Form::Full, &facts, &results, &goals);
        let report: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(report["groups"].as_array().unwrap().len(), results.len());
        assert_eq!(
            report["groups"][0]["cells"].as_array().unwrap().len(),
            results[0].cells.len()
        );
        assert!(
            report["packages"]["tokio"]
                .as_str()
                .unwrap()
                .starts_with("1.")
        );
    }
}

//! The results as JSON.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::facts::{Facts, version};
use crate::funnel::CHANNELS;
use crate::goals::Goal;
use crate::pairs::NOTES;
use crate::plan::Form;
use crate::results::{CellResult, GroupResult};

/// The whole run.
///
/// # Panics
///
/// Never: what is made here can always be written.
pub fn json(form: Form, facts: &Facts, results: &[GroupResult], goals: &[Goal]) -> String {
    let cells = results.iter().flat_map(|group| &group.cells);
    let packages: BTreeMap<&str, &str> = cells
        .flat_map(|cell| cell.cell.pair.packages)
        .map(|package| (package, version(package)))
        .collect();
    let report = json!({
        "benchmark": "funnel",
        "form": form.name(),
        "date": facts.date,
        "command": facts.command,
        "machine": { "cpu": facts.cpu, "cores": facts.cores, "os": facts.os },
        "rustc": facts.rustc,
        "packages": packages,
        "channels": CHANNELS,
        "unit": "messages per microsecond",
        "groups": results.iter().map(group).collect::<Vec<_>>(),
        "goals": goals.iter().map(goal).collect::<Vec<_>>(),
        "notes": NOTES,
    });
    serde_json::to_string_pretty(&report).expect("strings and numbers") + "\n"
}

fn group(group: &GroupResult) -> Value {
    let ratio = |other: Option<&CellResult>| Some(rounded(group.ours()?.rate() / other?.rate()));
    json!({
        "name": group.name(),
        "senders": group.shape.senders,
        "capacity": group.shape.capacity,
        "messages": group.shape.messages(),
        "rounds": group.rounds(),
        "best_other": group.best_other().map(|cell| cell.cell.name()),
        "ours_to_best_other": ratio(group.best_other()),
        "ours_to_tokio": ratio(group.tokio()),
        "cells": group.cells.iter().map(cell).collect::<Vec<_>>(),
    })
}

fn cell(cell: &CellResult) -> Value {
    let rates = cell.rates();
    json!({
        "channel": cell.cell.pair.channel,
        "runtime": cell.cell.pair.runtime,
        "workers": cell.cell.workers,
        "messages": cell.shape.messages(),
        "median": rounded(cell.rate()),
        "least": rounded(rates[0]),
        "most": rounded(rates[rates.len() - 1]),
    })
}

fn goal(goal: &Goal) -> Value {
    json!({
        "group": goal.group,
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
        let text = json(
            Form::Full,
            &Facts::gather(),
            &results,
            &crate::goals::goals(&results),
        );
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

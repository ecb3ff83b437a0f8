//! The report: one page of HTML with the goals, the charts and the tables, which needs nothing beside it.

use std::fmt::Write;

use crate::facts::{Facts, version};
use crate::goals::Goal;
use crate::latency::{self, LatencyResult};
use crate::memory::Memory;
use crate::peers::NOTES;
use crate::plan::Form;
use crate::results::GroupResult;
use crate::suite::SUITES;
use crate::table;

/// What was measured.
#[derive(Debug)]
pub struct Report {
    /// How thoroughly.
    pub form: Form,
    /// Where, when, and by which command.
    pub facts: Facts,
    /// Everything against the clock.
    pub results: Vec<GroupResult>,
    /// Latencies.
    pub latencies: Vec<LatencyResult>,
    /// Memory.
    pub memory: Option<Memory>,
    /// What was asked for.
    pub goals: Vec<Goal>,
}

const STYLE: &str = "\
body{font:15px/1.5 system-ui,-apple-system,Segoe UI,Helvetica,Arial,sans-serif;color:#1f2937;background:#f3f4f6;\
margin:0 auto;max-width:1060px;padding:24px}\
section{background:#fff;border-radius:8px;padding:8px 24px 20px;margin:0 0 20px;overflow-x:auto}\
svg{display:block;margin:0 auto 20px;max-width:100%;height:auto}\
h1{font-size:26px;margin:8px 0}h2{font-size:20px;margin:12px 0 4px}p{margin:6px 0}\
table{border-collapse:collapse;margin:12px 0;font-size:13px;font-variant-numeric:tabular-nums}\
td,th{padding:3px 10px;text-align:right;border-bottom:1px solid #e5e7eb}\
td:first-child,th:first-child{text-align:left}td:first-child{max-width:30em}\
th{font-weight:600;vertical-align:bottom}tr.ours td{font-weight:600;color:#d9480f}\
.faint{color:#6b7280}.met{color:#2b8a3e;font-weight:600}.unmet{color:#c92a2a;font-weight:600}\
code{background:#f3f4f6;padding:1px 5px;border-radius:4px}summary{cursor:pointer;margin:8px 0}";

/// The page, with these charts in it.
pub fn html(report: &Report, charts: &[(String, String)]) -> String {
    let facts = &report.facts;
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'>\
         <meta name='viewport' content='width=device-width, initial-scale=1'>\
         <title>wakerun, measured</title><style>{STYLE}</style></head><body>\n\
         <section><h1>wakerun, measured</h1>\n<p>{}</p>\n\
         <p class='faint'>{} · commit {} · <code>{}</code> · the {} form</p>\n<p class='faint'>{}</p>\n\
         <p>Only ratios within this run mean anything: machines drift. In every round all cells of a group take \
         turns, each on a fresh runtime; figures are medians.</p></section>\n",
        escape(&facts.machine()),
        escape(&facts.date),
        escape(if facts.commit.is_empty() {
            "unknown"
        } else {
            facts.commit
        }),
        escape(&facts.command),
        report.form.name(),
        escape(&versions(report)),
    );
    if !report.goals.is_empty() {
        let met = report.goals.iter().filter(|goal| goal.met()).count();
        let _ = writeln!(
            page,
            "<section><h2>Goals</h2><p>{met} of {} cells meet their goals.</p>{}\
             <details><summary>every cell</summary>{}</details></section>",
            report.goals.len(),
            table(&table::goal_rows(&report.goals)),
            table(&table::goal_cells(&report.goals)),
        );
    }
    for (_, chart) in charts {
        page += chart;
    }
    for suite in SUITES {
        let of_suite: Vec<GroupResult> = report
            .results
            .iter()
            .filter(|group| group.group.suite == suite.name)
            .cloned()
            .collect();
        if of_suite.is_empty() {
            continue;
        }
        let about = escape(suite.about);
        let _ = write!(page, "<section><h2>{}</h2><p>{about}.</p>", suite.name);
        for groups in table::blocks(&of_suite) {
            let _ = write!(
                page,
                "<p class='faint'>{}.</p>{}",
                escape(&table::caption(&groups)),
                table(&table::compared(&groups))
            );
        }
        page += "</section>\n";
    }
    for (title, lines) in latency::tables(&report.latencies) {
        page += &section(&title, &lines);
    }
    for (title, lines) in report.memory.iter().flat_map(Memory::tables) {
        page += &section(&title, &lines);
    }
    page += "<section><h2>To compare fairly</h2>";
    for note in NOTES {
        let _ = write!(page, "<p>{}</p>", escape(note));
    }
    page + "<p>† Slow, and so measured with less work.</p></section>\n</body></html>\n"
}

fn section(title: &str, lines: &[Vec<String>]) -> String {
    format!(
        "<section><h2>{}</h2>{}</section>\n",
        escape(title),
        table(lines)
    )
}

/// The versions of what took part.
fn versions(report: &Report) -> String {
    let mut packages: Vec<&str> = report
        .results
        .iter()
        .flat_map(|group| &group.cells)
        .flat_map(|cell| cell.cell.packages.iter().copied())
        .filter(|package| *package != "std")
        .collect();
    packages.sort();
    packages.dedup();
    let versions = packages
        .iter()
        .map(|package| format!("{package} {}", version(package)));
    versions.collect::<Vec<_>>().join(", ")
}

/// Lines of cells as a table; the first line is the header. Stars around a cell mean bold, as in Markdown.
fn table(lines: &[Vec<String>]) -> String {
    let mut text = String::from("<table>");
    for (index, line) in lines.iter().enumerate() {
        let ours = line[0].starts_with(crate::ours::NAME);
        text += if ours { "<tr class='ours'>" } else { "<tr>" };
        for cell in line {
            let tag = if index == 0 { "th" } else { "td" };
            let bare = cell.trim_matches('*');
            let class = match bare {
                "met" => " class='met'",
                "not met" => " class='unmet'",
                _ => "",
            };
            let content = escape(bare);
            let content = if bare.len() < cell.len() && class.is_empty() {
                format!("<b>{content}</b>")
            } else {
                content
            };
            let _ = write!(text, "<{tag}{class}>{content}</{tag}>");
        }
        text += "</tr>\n";
    }
    text + "</table>"
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::invented;

    #[test]
    fn the_page_needs_nothing_beside_it() {
        let results = invented();
        let report = Report {
            form: Form::Full,
            facts: Facts::gather("cargo bench --bench report"),
            goals: crate::goals::goals(&results, None),
            latencies: crate::latency::tests::invented(),
            memory: Some(crate::memory::measure(2, |name| name == "tokio")),
            results,
        };
        let chart = crate::chart::bars(&report.facts, &report.results);
        let page = html(&report, &[("funnel.svg".into(), chart)]);
        // Only the namespace of the charts is an address.
        let addresses = page.matches("http").count();
        assert_eq!(
            addresses,
            page.matches("http://www.w3.org/2000/svg").count()
        );
        for tag in ["section", "table", "tr", "details", "svg"] {
            let opened = page.matches(&format!("<{tag}>")).count()
                + page.matches(&format!("<{tag} ")).count();
            assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{tag}");
        }
        assert!(page.contains("cargo bench --bench report") && page.contains("kanal on tokio"));
    }
}
